// Uses a session from three clients at the same time, whose browser contexts are the restored
// environment: two of Playwright and one of Puppeteer. Scripts written for empty contexts must
// run unchanged.
//
// Input, as JSON on stdin: {endpoint, plain, allowed, site, timeout_ms}
//   endpoint  cdp_url with context=environment
//   plain     cdp_url without it
//   allowed   endpoint with shared_writes=allow
//   site      a site whose pages say whether their visitor is logged in
// Output: on stderr, what was not as expected
import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { until } from './steps.mjs';

const { endpoint, plain, allowed, site, timeout_ms: timeout } = JSON.parse(await text(process.stdin));

const connect = async (to = endpoint) => {
  const browser = await chromium.connectOverCDP(to, { timeout });
  return browser;
};
const newContext = async (browser, options) => {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(timeout);
  return context;
};
const open = async (context, path = '/') => {
  const page = await context.newPage();
  await page.goto(site + path);
  return page;
};
const title = (page) => page.evaluate(() => document.title);
const permission = (page, name) => page.evaluate(async (name) => (await navigator.permissions.query({ name })).state, name);
/** refused returns why a call was refused. */
const refused = async (call) => {
  try {
    await call();
  } catch (err) {
    return String(err.message);
  }
  throw new Error(`not refused: ${call}`);
};

async function main() {
  const [first, second] = [await connect(), await connect()];
  const third = await puppeteer.connect({ browserWSEndpoint: endpoint, defaultViewport: null, protocolTimeout: timeout });
  const restored = first.contexts()[0].pages().length;

  // Every context is logged in, and has only its own pages.
  const contexts = await Promise.all([newContext(first), newContext(first, { viewport: { width: 400, height: 300 }, locale: 'fi-FI' }), newContext(second)]);
  const pages = await Promise.all(contexts.map((c) => open(c)));
  const tab = await (await third.createBrowserContext()).newPage();
  tab.setDefaultTimeout(timeout);
  await tab.goto(`${site}/`);
  for (const page of [...pages, tab]) assert.equal(await title(page), 'logged in');
  for (const c of contexts) assert.equal(c.pages().length, 1, 'the pages of a context');
  assert.equal(await pages[1].evaluate(() => `${innerWidth} ${navigator.language}`), '400 fi-FI');
  assert.equal(first.contexts().length, 3, 'contexts of the first client');
  assert.equal(second.contexts().length, 2, 'contexts of the second client');
  assert.equal(third.browserContexts().length, 2, 'contexts of Puppeteer');
  assert.equal(second.contexts()[0].pages().length, restored, 'the default context has the restored pages only');
  assert.equal((await third.pages()).length, restored + 1, 'pages of Puppeteer');

  // A pop-up belongs to the context of its opener, and the other clients do not see it.
  const [popup] = await Promise.all([contexts[2].waitForEvent('page'), pages[2].evaluate(() => { window.open('/popup'); })]);
  await popup.waitForLoadState();
  assert.equal(await title(popup), 'logged in');
  assert.equal(contexts[2].pages().length, 2);
  assert.equal(first.contexts().flatMap((c) => c.pages()).length, restored + 2, 'pages of the first client');
  assert.equal((await third.pages()).length, restored + 1, 'pages of Puppeteer, with a pop-up of Playwright');

  // Every page paints, also the pages behind.
  const sizes = await Promise.all([...pages, popup, tab].map(async (p) => (await p.screenshot()).length));
  assert.ok(Math.min(...sizes) > 0, 'screenshots');

  // One client's permissions do not reject another's.
  const origin = new URL(site).origin;
  await Promise.all([contexts[0].grantPermissions(['geolocation'], { origin }), contexts[2].grantPermissions(['notifications'], { origin })]);
  for (const page of pages) {
    assert.equal(await permission(page, 'geolocation'), 'granted', 'geolocation');
    assert.equal(await permission(page, 'notifications'), 'granted', 'notifications');
  }
  await contexts[0].clearPermissions();
  assert.notEqual(await permission(pages[2], 'geolocation'), 'granted', 'geolocation after clearPermissions');
  assert.equal(await permission(pages[2], 'notifications'), 'granted', 'notifications after the clearPermissions of another context');

  // A download belongs to the page that began it.
  const others = [];
  contexts[2].on('download', (d) => others.push(d));
  const [download] = await Promise.all([pages[0].waitForEvent('download'), pages[0].evaluate(() => { location = '/download'; })]);
  assert.equal(download.suggestedFilename(), 'report.txt');
  assert.deepEqual(others, []);
  const strict = await newContext(first, { acceptDownloads: false });
  const careful = await open(strict);
  const [denied] = await Promise.all([careful.waitForEvent('download'), careful.evaluate(() => { location = '/download'; })]);
  assert.equal(await denied.failure() !== null, true, 'a download of a context that accepts none');

  // Routes and requests are those of one context.
  await contexts[0].route('**/api', (route) => route.fulfill({ body: 'mocked' }));
  const answer = (page) => page.evaluate(async () => (await fetch('/api')).text());
  assert.equal(await answer(pages[0]), 'mocked');
  assert.equal(await answer(pages[2]), 'real');

  // Cookies of the environment are there, new ones may be added, and none can be lost.
  const names = (await contexts[0].cookies()).map((c) => c.name);
  assert.ok(names.includes('session'), `cookies: ${names}`);
  await contexts[0].addCookies([{ name: 'flavour', value: 'oat', url: site }]);
  assert.match(await refused(() => contexts[0].addCookies([{ name: 'session', value: 'stolen', url: site }])), /would replace the session's own cookie "session"/);
  assert.match(await refused(() => contexts[0].clearCookies()), /would log others out.*shared_writes/);
  assert.match(await refused(() => contexts[0].clearCookies({ name: 'session' })), /the session's own cookie "session"/);
  const state = await contexts[0].storageState();
  assert.match(await refused(() => second.newContext({ storageState: state })), /storageState would delete the session's own storage/);
  assert.match(await refused(() => first.newContext({ proxy: { server: 'http://127.0.0.1:9' } })), /one proxy/);
  assert.match(await refused(async () => (await tab.createCDPSession()).send('Network.clearBrowserCookies')), /would log others out/);
  assert.equal((await contexts[1].request.get(`${site}/renew`)).status(), 200); // Playwright ignores that the new value is refused
  for (const page of [...pages.slice(1), tab]) {
    await page.reload();
    assert.equal(await title(page), 'logged in', 'after what was refused');
  }

  // The end of a context closes its own pages only, and so does the end of a connection.
  await contexts[0].close();
  await until('the page of the closed context closes', timeout, () => pages[0].isClosed()); // Stasis waits five seconds for a busy page
  assert.equal(await title(pages[1]), 'logged in');
  await strict.close();
  await second.close();
  const observer = await connect(plain);
  const open_ = () => observer.contexts()[0].pages().length;
  await until('the pages of the closed connection close', timeout, () => open_() === restored + 2);
  assert.equal(await title(pages[1]), 'logged in');
  assert.equal(await title(tab), 'logged in');

  // A connection without the option has an empty context, and its pages are hidden from those with it.
  const empty = await open(await newContext(observer));
  assert.equal(await title(empty), 'logged out');
  assert.equal(first.contexts().flatMap((c) => c.pages()).length, restored + 1);

  const writer = await connect(allowed);
  const changed = await newContext(writer);
  await changed.clearCookies();
  assert.equal(await title(await open(changed)), 'logged out');
  await Promise.all([first.close(), third.disconnect(), observer.close(), writer.close()]);
}

try {
  await main();
  process.exit(0);
} catch (err) {
  console.error(err);
  process.exit(1);
}
