// Uses the live view as a person does, in a plain Chrome.
//
// Input, as JSON on stdin: {control, view, cdp, site, timeout_ms}
//   control, view  agent_url and vnc_url of a session that shows site + "/"
//   cdp            the session's cdp_url, to read what the input did
// Output: on stderr, what was not as expected
// Exit status: 0 only if all was as expected.
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import assert from 'node:assert/strict';
import puppeteer from 'puppeteer-core';
import { until } from './steps.mjs';

const input = JSON.parse(await text(process.stdin));
const wait = (what, probe) => until(what, input.timeout_ms, probe);

/** open opens a live view and waits for its first picture. */
async function open(browser, url, viewport) {
  const page = await browser.newPage();
  page.setDefaultNavigationTimeout(input.timeout_ms);
  await page.setViewport(viewport);
  await page.goto(url);
  await wait('the first picture', () => page.evaluate(() => document.getElementById('picture').width > 1 && note.textContent === ''));
  return page;
}

/** at returns where a point of the session's tab is in a live view. */
const at = (page, x, y) => page.evaluate((x, y) => {
  const box = picture.getBoundingClientRect();
  return [box.left + (x / shown.width) * box.width, box.top + (y / shown.height) * box.height];
}, x, y);

/** gesture repeats what a finger does until it shows. On a busy machine a tap may become a long press, and a person does it again. */
const gesture = (what, does, shows) => wait(what, async () => {
  await does();
  return until(what, 3000, shows).catch(() => false);
});

/** said returns what the page of the live view says beside the picture. */
const said = (page) => page.evaluate(() => ({
  role: role.textContent, who: who.textContent, note: note.textContent, address: address.value,
  tabs: [...tabs.querySelectorAll('.title')].map((t) => t.textContent), shown: tabs.querySelector('[data-shown] .title')?.textContent,
}));

async function main(browser, session) {
  const [tab] = await session.pages();
  const inTab = (expression) => tab.evaluate(expression);
  const page = await open(browser, input.control, { width: 1280, height: 900 });
  assert.equal((await said(page)).role, 'You have control');
  assert.deepEqual((await said(page)).tabs, ['<img src=x onerror=alert(1)>'], 'a hostile title is text');

  await page.mouse.click(...await at(page, 60, 60)); // the field
  await page.keyboard.type('héllo wörld ');
  const ime = await page.createCDPSession();
  await ime.send('Input.imeSetComposition', { text: 'にほ', selectionStart: 2, selectionEnd: 2 });
  await wait('the composition', async () => await inTab('document.querySelector("input").value') === 'héllo wörld にほ');
  await ime.send('Input.insertText', { text: '日本' });
  await wait('the end of the composition', async () => await inTab('document.querySelector("input").value') === 'héllo wörld 日本');
  await page.keyboard.sendCharacter('😀');
  await page.keyboard.press('Backspace');
  await page.keyboard.type('!');
  await wait('the text in the field', async () => await inTab('document.querySelector("input").value') === 'héllo wörld 日本!');

  await page.keyboard.press('F6');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'address', 'F6 leaves the page');
  await page.evaluate(() => keys.focus());
  await page.keyboard.press('Tab'); // to the list, whose options Chrome would draw outside the page
  await page.keyboard.press('ArrowDown');
  await wait('the chosen option', async () => await inTab('document.querySelector("select").value') === 'green');

  // The live view draws the list that Chrome shows outside the page.
  for (const [key, chosen] of [['ArrowUp', 'red'], ['ArrowDown', 'green']]) {
    await page.mouse.click(...await at(page, 60, 110));
    await wait('the list', () => page.evaluate(() => picker.open && choice.querySelector('option').textContent === 'red'));
    await page.keyboard.press(key);
    await page.keyboard.press('Enter');
    await wait('the chosen option', async () => await inTab('document.querySelector("select").value') === chosen);
  }

  await page.mouse.click(...await at(page, 60, 60));
  await page.keyboard.down('Control');
  await page.keyboard.press('KeyA');
  await page.keyboard.press('KeyC');
  await page.keyboard.up('Control');
  await wait('the copied text', () => page.evaluate((text) => note.textContent === 'Copied.' || copied.open && document.getElementById('copy-text').value === text, 'héllo wörld 日本!'));
  await page.evaluate(() => copied.close());

  await page.mouse.move(...await at(page, 300, 300));
  await page.mouse.wheel({ deltaY: 200 });
  await wait('the scrolled page', () => inTab('scrollY === 200'));
  await page.mouse.wheel({ deltaY: -200 });
  await wait('the page scrolled back', () => inTab('scrollY === 0'));

  await page.mouse.click(...await at(page, 60, 160)); // the link to a new tab
  await wait('the new tab', async () => (await said(page)).shown === 'two');
  await page.evaluate(() => tabs.querySelector('[data-shown] button:not(.title)').click());
  await wait('the first tab', async () => (await said(page)).tabs.length === 1 && (await said(page)).address === `${input.site}/`);

  await page.mouse.click(...await at(page, 60, 60)); // the picture is new again
  await page.click('#address', { count: 3 });
  await page.keyboard.type(`${input.site.replace('http://', '')}/two`);
  await page.keyboard.press('Home');
  await page.keyboard.type('http://');
  await page.keyboard.press('Enter');
  await wait('the typed address', async () => (await said(page)).shown === 'two');
  await page.click('#back');
  await wait('the page before', async () => (await said(page)).address === `${input.site}/`);
  await page.evaluate(() => control('navigate', { url: 'file:///etc/passwd' }));
  await wait('the refusal', async () => /cannot be opened/.test((await said(page)).note));
  const refused = Date.now();
  await page.click('#address', { count: 3 });
  await page.keyboard.type(`${input.site}/two`);
  await page.keyboard.press('Enter');
  await wait('the good address', async () => (await said(page)).shown === 'two');
  assert.ok((await said(page)).note === '' || Date.now() - refused > 8000, 'the refusal is not shown beside a page that was opened');
  await page.click('#back');
  await wait('the page before again', async () => (await said(page)).address === `${input.site}/`);
  // This client may learn of the navigation after the live view did.
  await wait('the page before in the tab', () => inTab('location.pathname === "/"').catch(() => false));

  // Dialogs of the page wait for the person.
  const asked = inTab('Promise.resolve().then(() => prompt("Your <b>name</b>?", "nobody"))');
  asked.catch(() => {}); // it is awaited later, and the wait before says more
  await wait('the dialog', () => page.evaluate(() => dialog.open && document.getElementById('message').textContent === 'Your <b>name</b>?' && document.getElementById('answer').value === 'nobody'));
  await page.click('#answer', { count: 3 });
  await page.keyboard.type('Zoë');
  await page.keyboard.press('Enter');
  assert.equal(await asked, 'Zoë');
  const confirmed = inTab('Promise.resolve().then(() => confirm("Sure?"))');
  confirmed.catch(() => {});
  await wait('the second dialog', () => page.evaluate(() => dialog.open && document.getElementById('answer').hidden));
  await page.click('#cancel');
  assert.equal(await confirmed, false);

  // A dialog waits while another tab is shown, and the answer to an earlier one does not reach it.
  const later = inTab('Promise.resolve().then(() => confirm("Still here?"))');
  later.catch(() => {});
  await wait('the third dialog', () => page.evaluate(() => dialog.open));
  const other = await session.newPage();
  await wait('no dialog in the other tab', async () => (await said(page)).tabs.length === 2 && !await page.evaluate(() => dialog.open));
  await page.evaluate((url) => {
    control('dialog', { number: 3, accept: false });
    control('navigate', { url });
  }, `${input.site}/two`);
  await wait('the page of the other tab, opened after the answer was ignored', async () => (await said(page)).address === `${input.site}/two`);
  await other.close();
  await wait('the third dialog again', () => page.evaluate(() => dialog.open && document.getElementById('message').textContent === 'Still here?'));
  await page.evaluate(() => control('dialog', { number: 2, accept: false }));
  await page.click('#dialog button[value=ok]');
  assert.equal(await later, true);

  // A viewer without control sees the same and changes nothing, whatever its page sends.
  const looker = await open(browser, input.view, { width: 1280, height: 900 });
  assert.deepEqual({ ...(await said(looker)), note: '' }, { role: 'View only', who: 'default, 2 viewers, 1 program', note: '', address: `${input.site}/`, tabs: ['<img src=x onerror=alert(1)>'], shown: '<img src=x onerror=alert(1)>' });
  await looker.evaluate((url) => {
    send('navigate', { url });
    send('new_tab', {});
    send('mouse', { event: 'down', x: 60, y: 160, button: 'left', buttons: 1, clicks: 1 });
    send('mouse', { event: 'up', x: 60, y: 160, button: 'left', buttons: 0, clicks: 1 });
  }, `${input.site}/two`);
  await looker.mouse.click(...await at(looker, 60, 160));

  // A phone: a finger taps and drags.
  const phone = await open(browser, input.control, { width: 390, height: 844, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
  await inTab('document.activeElement.blur()');
  const tap = async (x, y) => phone.touchscreen.tap(...await at(phone, x, y));
  await gesture('the tap', () => tap(60, 60), async () => await inTab('document.activeElement.tagName === "INPUT"')
    && phone.evaluate(() => document.activeElement === keys && keys.inputMode === 'text')); // the on-screen keyboard
  await inTab('document.activeElement.value = ""');
  const screenKeys = await phone.createCDPSession();
  await screenKeys.send('Input.imeSetComposition', { text: 'ye', selectionStart: 2, selectionEnd: 2 });
  await screenKeys.send('Input.insertText', { text: 'yes' });
  await wait('the word', async () => await inTab('document.activeElement.value') === 'yes');
  await phone.evaluate(() => document.execCommand('delete')); // as on-screen keyboards do
  await wait('the deletion', async () => await inTab('document.activeElement.value') === 'ye');
  await gesture('no on-screen keyboard', () => tap(700, 300), () => phone.evaluate(() => document.activeElement === keys && keys.inputMode === 'none'));
  await phone.tap('#keyboard');
  await wait('the on-screen keyboard of the button', () => phone.evaluate(() => keys.inputMode === 'text'));
  const [low, high, left, right] = await Promise.all([[400, 500], [400, 200], [300, 500], [500, 500]].map(([x, y]) => at(phone, x, y)));
  await gesture('the drag', async () => {
    await inTab('scrollTo(0, 0)');
    const drags = await phone.touchscreen.touchStart(...low);
    await drags.move(...high);
    await drags.end();
  }, () => inTab('scrollY >= 300'));
  await inTab('onmousemove = (e) => { if (e.buttons === 1) globalThis.dragged = e.clientX; }');
  const held = await phone.touchscreen.touchStart(...left);
  await wait('the long press', () => phone.evaluate(() => finger?.holds));
  await held.move(...right);
  await wait('the mouse after a long press', () => inTab('globalThis.dragged > 480'));
  await held.end();
  assert.equal((await session.pages()).length, 1, 'the viewer without control opened no tab');
  assert.equal(await inTab('location.pathname'), '/', 'nor an address');

  // A shared link shows the session until it is revoked.
  await page.bringToFront();
  await page.click('#share');
  await page.click('#share-form button');
  await wait('the link', () => page.evaluate(() => document.querySelector('#share-list button') && document.getElementById('share-address').value));
  const guest = await open(browser, await page.evaluate(() => document.getElementById('share-address').value), { width: 1280, height: 900 });
  assert.equal((await said(guest)).role, 'View only');
  assert.equal(await guest.evaluate(() => [...document.querySelectorAll('#actions button')].every((b) => b.hidden)), true, 'a guest saves, shares and lists nothing');
  await page.evaluate(() => document.querySelector('#share-list button').click());
  await wait('the end of the link', async () => /^This link has ended\.|this link is no longer valid\.$/.test((await said(guest)).note)); // the second if the connection was cut
  await page.bringToFront();
  await page.keyboard.press('Escape');

  // The page saves the session, which ends, and still says what was saved.
  await page.click('#save');
  await page.click('#save-buttons button');
  await wait('the save', () => page.evaluate(() => document.getElementById('save-panel').open && /^Saved as version \d+ of the default of default\.$/.test(document.getElementById('save-text').textContent)));
  for (const p of [page, looker, phone]) {
    await wait('the end', async () => (await said(p)).role === 'Ended');
    const active = await p.evaluate(() => role.hasAttribute('data-control') || [...document.querySelectorAll('header button, header input')].some((b) => !b.disabled));
    assert.ok(!active, 'nothing looks active after the end');
  }
}

/** seen describes the live views and the session's tabs, for an error. A browser that hangs adds nothing. */
async function seen() {
  return Promise.race([describe(), setTimeout(10_000, 'what they show could not be read')]).catch(String);
}

async function describe() {
  const views = (await browser?.pages() ?? []).filter((p) => p.url().includes('/live?'));
  const shown = await Promise.all(views.map((p) => said(p).catch(String)));
  return JSON.stringify({ views: shown, tabs: (await session?.pages() ?? []).map((p) => p.url()) });
}

let browser, session;
try {
  browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'], timeout: input.timeout_ms });
  session = await puppeteer.connect({ browserWSEndpoint: input.cdp, defaultViewport: null });
  await main(browser, session);
} catch (err) {
  console.error(err);
  console.error(await seen());
  process.exitCode = 1;
} finally {
  await browser?.close();
}
process.exit();
