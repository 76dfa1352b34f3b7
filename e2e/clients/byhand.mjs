// Logs in by hand in a plain Chrome: in the console and the live view, at a wiki and at a site
// with a second factor, and saves both as the default.
//
// Input, as JSON on stdin: {url, key, user, wiki, wiki_user, wiki_password, site, secret, file, timeout_ms}
//   url                   of the daemon
//   wiki                  the address of DokuWiki's login form, with the account
//   site                  a site as in journey_byhand_test.go; secret is that of its second factor, in hex
//   file                  the path of a file to upload
// Output: on stderr, what was not as expected
// Exit status: 0 only if all was as expected.
import { createHmac } from 'node:crypto';
import { text } from 'node:stream/consumers';
import assert from 'node:assert/strict';
import puppeteer from 'puppeteer-core';
import { until } from './steps.mjs';

const input = JSON.parse(await text(process.stdin));
const wait = (what, probe) => until(what, input.timeout_ms, probe);
const press = (page, selector) => Promise.all([page.waitForNavigation(), page.click(selector)]);
const named = (label) => `::-p-xpath(//*[self::a or self::button][normalize-space()="${label}"])`;

/** code is what the person's authenticator shows (RFC 6238, 30 s, 6 digits). */
function code() {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const sum = createHmac('sha1', Buffer.from(input.secret, 'hex')).update(counter).digest();
  const at = sum.at(-1) & 15;
  return String((sum.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

/** isShown reports whether the shown tab has a title. */
const isShown = (live, title) => live.evaluate((title) => tabs.querySelector('[data-shown] .title')?.textContent.includes(title), title);

/** shows waits until the shown tab has a title. */
const shows = (live, title) => wait(`the page ${title}`, () => isShown(live, title));

/** click clicks at a point of the shown tab. */
async function click(live, x, y) {
  await live.mouse.click(...await live.evaluate((x, y) => {
    const box = picture.getBoundingClientRect();
    return [box.left + (x / shown.width) * box.width, box.top + (y / shown.height) * box.height];
  }, x, y));
}

/**
 * clickUntil clicks until a probe is truthy. Chrome drops a click on a tab that is not visible yet, for example when
 * a pop-up has closed, and on a page that it has not drawn yet. A person clicks again.
 */
async function clickUntil(live, x, y, what, probe) {
  await wait(what, async () => {
    await click(live, x, y);
    return until('a reaction to the click', 3000, probe).catch(() => false);
  });
}

/** go types an address, as a person does. */
async function go(live, address) {
  await live.click('#address', { count: 3 });
  await live.keyboard.type(address);
  await live.keyboard.press('Enter');
}

/** hasFocus reports whether a field of a page of the session has the focus. A person sees the caret in it. */
async function hasFocus(live, name) {
  const session = new URL(live.url()).pathname.replace(/\/live$/, '');
  const { cdp_url: endpoint } = await (await fetch(input.url + session, { headers: { authorization: `Bearer ${input.key}` } })).json();
  const inside = await puppeteer.connect({ browserWSEndpoint: endpoint, defaultViewport: null });
  const found = await Promise.all((await inside.pages()).map((page) =>
    page.evaluate((name) => document.activeElement?.name === name, name).catch(() => false))); // it may be navigating
  await inside.disconnect();
  return found.includes(true);
}

/** logInToWiki uses only the keyboard: the form's first field has the focus. */
async function logInToWiki(live) {
  await shows(live, 'Wiki');
  await wait('a sharp picture', () => live.evaluate(() => picture.width > 1000));
  await wait('the focus', () => hasFocus(live, 'u'));
  await live.focus('#keys');
  await live.keyboard.type(input.wiki_user);
  await live.keyboard.press('Tab');
  await live.keyboard.type(input.wiki_password);
  await live.keyboard.press('Enter');
  await shows(live, 'start');
}

async function logInToSite(live) {
  await live.evaluate(() => [...tabs.children].at(-1).click()); // "+"
  await wait('the new tab', () => live.evaluate(() => tabs.querySelectorAll('.title').length === 2));
  await go(live, `${input.site}/`);
  await shows(live, 'sign in');
  await clickUntil(live, 60, 60, 'the focus on the name', () => hasFocus(live, 'name'));
  await live.keyboard.type('Zoë ');
  await live.keyboard.sendCharacter('🦊');
  await click(live, 60, 110); // the country
  await wait('the list of countries', () => live.evaluate(() => picker.open));
  await live.keyboard.press('ArrowDown');
  await live.keyboard.press('Enter');
  await wait('the list has closed', () => live.evaluate(() => !picker.open));
  await click(live, 60, 160); // opens a pop-up
  await shows(live, 'consent');
  await clickUntil(live, 60, 60, 'the page after the consent', () => isShown(live, 'sign in')); // agrees, and closes it
  await clickUntil(live, 60, 210, 'the second factor', () => isShown(live, 'second factor')); // signs in
  await clickUntil(live, 60, 60, 'the focus on the code', () => hasFocus(live, 'code'));
  await live.keyboard.type(code());
  await live.keyboard.press('Enter');
  await shows(live, 'welcome Zoë 🦊');
}

/** useSite uploads, downloads and answers a dialog. */
async function useSite(live) {
  await clickUntil(live, 60, 60, 'the file chooser', () => live.evaluate(() => chooser.open));
  const field = await live.$('#chosen');
  await field.uploadFile(input.file);
  await live.click('#give');
  await shows(live, 'uploaded');
  await click(live, 60, 110);
  await wait('the download', () => live.evaluate(() => document.getElementById('files').textContent === 'Files (new)'));
  await live.click('#files');
  await wait('the link', () => live.evaluate(() => [...document.querySelectorAll('#files-list a')].some((a) => a.textContent === 'codes.txt')));
  const download = await live.evaluate(async () => (await fetch([...document.querySelectorAll('#files-list a')].find((a) => a.textContent === 'codes.txt').href)).text());
  assert.equal(download, 'spare codes');
  await live.keyboard.press('Escape');
  await click(live, 60, 160);
  await wait('the question', () => live.evaluate(() => dialog.open && document.getElementById('message').textContent === 'Trust this browser?'));
  await live.keyboard.press('Enter');
  await shows(live, 'trusted');
}

async function main(page) {
  await page.goto(input.url);
  await page.type('#key', input.key);
  await press(page, named('Sign in'));
  await page.goto(`${input.url}/console/users`);
  await page.type('[name=user_id]', input.user);
  await press(page, named('Open'));
  await page.type('#start_url', input.wiki);
  await press(page, named('Log in by hand'));
  const opened = new Promise((resolve) => { browser.once('targetcreated', resolve); });
  await page.click(named('Open the live view'));
  const live = await (await opened).page();
  await live.bringToFront();
  await live.setViewport({ width: 1280, height: 900 });
  await wait('the live view', () => live.evaluate(() => document.getElementById('role')?.textContent === 'You have control' && picture.width > 1).catch(() => false)); // it may still be opening

  await logInToWiki(live);
  await logInToSite(live);
  await useSite(live);
  await live.click('#save');
  await live.click('#save-buttons button');
  await wait('the save', () => live.evaluate((user) => document.getElementById('save-text').textContent === `Saved as version 1 of the default of ${user}.`, input.user));
  const lines = await live.evaluate(() => document.getElementById('save-lines').innerText);
  assert.match(lines, /127\.0\.0\.1: until about .*saved .*cookies/, 'what was saved');
}

let browser;
try {
  browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'], timeout: input.timeout_ms });
  const [page] = await browser.pages();
  page.setDefaultNavigationTimeout(input.timeout_ms);
  await main(page);
} catch (err) {
  console.error(err); // before the pages, which may not answer
  const shown = await Promise.all((await browser?.pages() ?? []).map(async (p) => `${p.url()}\n${await p.evaluate(() => document.body.innerText + [...document.querySelectorAll('.title')].map((t) => t.textContent)).catch(String)}`));
  console.error(shown.join('\n').slice(0, 3000));
  process.exitCode = 1;
} finally {
  await browser?.close();
}
process.exit();
