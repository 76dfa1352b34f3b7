// Uses the web console as a person does, in a plain Chrome: signs in, creates a session, logs
// in by hand through the live view, saves it as the default and restores that. Checks every
// page with axe-core, and on a phone for horizontal scrolling and for buttons that are too small.
//
// Input, as JSON on stdin: {url, key, site, timeout_ms, long}
//   url   of the daemon
//   long  whether every page is checked in dark colours, not every third
//   site  a site whose /login logs in, and whose titles begin with "welcome" then
// Output: on stderr, what was not as expected
// Exit status: 0 only if all was as expected.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import assert from 'node:assert/strict';
import puppeteer from 'puppeteer-core';
import { until } from './steps.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const input = JSON.parse(await text(process.stdin));
const wait = (what, probe) => until(what, input.timeout_ms, probe);

/** press clicks something and waits for the page that follows. */
const press = (page, selector) => Promise.all([page.waitForNavigation(), page.click(selector)]);

/** body returns the text of a page. */
const body = (page) => page.evaluate(() => document.body.innerText);

/** named returns a selector of the link or button with a text. */
const named = (label) => `::-p-xpath(//*[self::a or self::button][normalize-space()="${label}"])`;

/** call calls the API. */
async function call(path) {
  const answer = await fetch(input.url + path, { headers: { authorization: `Bearer ${input.key}` } });
  assert.equal(answer.status, 200, path);
  return answer.json();
}

/** examine checks one page: in light colours completely, and for contrast on a phone in dark colours if dark is set. */
async function examine(page, path, dark) {
  await page.goto(input.url + path);
  const found = [];
  for (const [scheme, width, rules] of [['light', 1280, undefined], ['dark', 375, ['color-contrast']]]) {
    await page.setViewport({ width, height: 800 });
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
    const violations = scheme === 'light' || dark ? await violationsOf(page, rules) : [];
    found.push(...violations.filter(([impact]) => impact === 'serious' || impact === 'critical'));
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(excess <= 0, `${path} is ${excess} px too wide at ${width}`);
    const small = await page.evaluate(() => [...document.querySelectorAll('button, .button, select, summary')].filter((e) => e.offsetHeight && e.offsetHeight < 40).map((e) => e.outerHTML));
    assert.deepEqual(width < 700 ? small : [], [], `${path} has what is too small for a finger`);
  }
  assert.deepEqual(found, [], `accessibility of ${path}`);
}

/** violationsOf runs axe-core, with some rules or all. */
const violationsOf = (page, rules) => page.evaluate(async (rules) => {
  const run = rules ? { runOnly: { type: 'rule', values: rules } } : {};
  return (await globalThis.axe.run(run)).violations.map((v) => [v.impact, v.id, v.nodes[0].html]);
}, rules);

/** signIn signs in, first with a wrong key. */
async function signIn(page) {
  await page.goto(input.url);
  assert.equal(page.url(), `${input.url}/console/`);
  await page.type('#key', 'no key of this daemon');
  await press(page, named('Sign in'));
  assert.match(await body(page), /This is no API key of this daemon/);
  await page.type('#key', input.key);
  await press(page, named('Sign in'));
  assert.match(await body(page), /No session runs/);
  const [cookie] = await browser.cookies();
  assert.ok(cookie.httpOnly && cookie.sameSite === 'Strict' && !cookie.value.includes(input.key), 'the cookie');
}

/** logIn logs in by hand, as the user of the console's page, and saves that as the default. */
async function logIn(page) {
  await page.goto(`${input.url}/console/users`);
  await page.type('[name=user_id]', 'ada');
  await press(page, named('Open'));
  assert.match(await body(page), /ada has no default environment yet/);
  await page.type('#start_url', `${input.site}/`);
  await press(page, named('Log in by hand'));
  const id = new URL(page.url()).pathname.split('/').pop();

  const opened = new Promise((resolve) => { browser.once('targetcreated', resolve); });
  await page.click(named('Open the live view'));
  const live = await (await opened).page();
  await live.bringToFront();
  await wait('the live view', () => live.evaluate(() => document.getElementById('role')?.textContent === 'You have control' && document.getElementById('picture').width > 1).catch(() => false)); // it may still be opening
  await live.click('#address', { count: 3 });
  await live.keyboard.type(`${input.site}/login`);
  await live.keyboard.press('Enter');
  await wait('the login', async () => (await call(`/v1/sessions/${id}/screenshot`)).title.startsWith('welcome'));
  await live.close();

  await page.bringToFront();
  await press(page, named('Save as default'));
  assert.match(await body(page), /It is the user's default environment now/);
  return id;
}

/** restore restores the default from the user's page and returns the new session. */
async function restore(page) {
  await page.goto(`${input.url}/console/users`);
  await press(page, named('ada'));
  assert.match(await body(page), /127\.0\.0\.1/, 'the login is listed');
  await press(page, named('Restore the default'));
  await page.type('#start_url', `${input.site}/`);
  await press(page, named('Create'));
  const id = new URL(page.url()).pathname.split('/').pop();
  assert.match(await body(page), /Everything that was saved is restored/);
  await wait('the restored login', async () => (await call(`/v1/sessions/${id}/screenshot`)).title.startsWith('welcome'));
  return id;
}

/** importLogin imports a login for another user as that user's default, from a file. */
async function importLogin(page) {
  const file = join(mkdtempSync(join(tmpdir(), 'import-')), 'cookies.txt');
  writeFileSync(file, '# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\t6d8c1f0a9b3e47d2\n');
  await page.goto(`${input.url}/console/user?user_id=grace`);
  await press(page, named('Import'));
  await page.select('#format', 'netscape');
  await (await page.$('#file')).uploadFile(file);
  await press(page, 'main button.primary');
  rmSync(dirname(file), { recursive: true });
  assert.match(await body(page), /is the default of grace now[^]*-F file=@FILE/);
  assert.match(await body(page), /cookies/);
}

async function main(page) {
  await signIn(page);
  await page.goto(`${input.url}/console/`);
  const ended = await logIn(page);
  const id = await restore(page);
  await wait('the memory of the session', async () => {
    await page.reload();
    return /no client, no viewer[^]*Memory\s[\d.]+ MiB/.test(await body(page));
  });
  await importLogin(page);

  await wait('the picture of the session', async () => {
    await page.goto(`${input.url}/console/`, { waitUntil: 'networkidle0' });
    return page.evaluate(() => document.querySelector('.card img')?.naturalWidth > 100);
  });
  const { snapshot_id: snapshot } = await call('/v1/users/ada/default');
  const { runs: [run] } = await call(`/v1/sessions/${ended}/runs`);
  // Chrome compiles it once in this way. The pages' policy does not apply to it.
  const { identifier } = await page.evaluateOnNewDocument(axe);
  for (const [i, path] of ['', 'sign-in', 'sessions/new', `sessions/${id}?login=1`, `sessions/${ended}`, `sessions/${ended}/runs/${run.run_id}`, 'users', 'user?user_id=ada',
    'snapshots', 'snapshots/import?user_id=ada', `snapshots/${snapshot}`, `snapshots/${snapshot}/diff?with=${snapshot}`, `snapshots/${snapshot}/delete`, 'extensions', 'webhooks', 'keys', 'daemon', 'nothing'].entries()) {
    await examine(page, `/console/${path}`, input.long || i % 3 === 0);
  }
  await page.removeScriptToEvaluateOnNewDocument(identifier);
  await page.setViewport({ width: 1280, height: 800 });
  await page.goto(`${input.url}/console/sessions/${id}`);
  await page.select('select[name=save]', '');
  await press(page, named('End'));
  assert.match(await body(page), /The session has ended. Nothing was saved./);
  await press(page, named('Sign out'));
  await page.goto(`${input.url}/console/keys`);
  assert.match(await body(page), /API key/);
  assert.deepEqual(refused, [], 'the Content-Security-Policy refused something');
}

let browser;
const refused = [];
try {
  browser = await puppeteer.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'], timeout: input.timeout_ms });
  const [page] = await browser.pages();
  page.setDefaultNavigationTimeout(input.timeout_ms);
  page.on('console', (m) => { if (m.text().includes('Content Security Policy')) refused.push(m.text()); });
  await main(page);
} catch (err) {
  console.error(err); // before the pages, which may not answer
  const shown = await Promise.all((await browser?.pages() ?? []).map(async (p) => `${p.url()}\n${await body(p).catch(String)}`));
  console.error(shown.join('\n').slice(0, 3000));
  process.exitCode = 1;
} finally {
  await browser?.close();
}
process.exit();
