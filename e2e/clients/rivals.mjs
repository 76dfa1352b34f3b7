// Keeps a browser's state in one of the ways that the client libraries have,
// and comes back with it.
//
//   node rivals.mjs WAY CHROME DIR EXTENSION TOLD
//
// WAY is storageState, persistentContext or userDataDir; DIR is the user data
// directory to begin with, EXTENSION the folder of an extension to load, TOLD
// what the first browser's pages are told, as JSON: {user_agent, viewport,
// timezone, locale, geolocation, extra_headers, proxy}, or null for nothing. It starts a browser and writes a line with the port
// of its DevTools. With the next line on stdin it leaves and comes back, and
// writes the new port; with the one after it closes and ends. The last line it
// writes is the user data directory as it was left.
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { cp, mkdtemp } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

const [way, executablePath, dir, extension, fields] = process.argv.slice(2);
const told = JSON.parse(fields) ?? {};

/** freePort asks the system for a TCP port that nothing listens on now. */
const freePort = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

// Both libraries speak to their browser as they always do; the port is for
// whoever looks at it from outside.
const port = await freePort();
const args = [
  `--remote-debugging-port=${port}`, `--load-extension=${extension}`, `--disable-extensions-except=${extension}`,
];
const playwright = { executablePath, args, chromiumSandbox: false, ignoreDefaultArgs: ['--disable-extensions'] };

/** asTold is how Playwright takes what pages are told. */
const asTold = {
  userAgent: told.user_agent, viewport: told.viewport, timezoneId: told.timezone, locale: told.locale,
  geolocation: told.geolocation, extraHTTPHeaders: told.extra_headers,
  proxy: told.proxy,
};

/** through are the flags by which Puppeteer gives Chrome a proxy. */
const through = told.proxy ? [`--proxy-server=${told.proxy.server}`, `--proxy-bypass-list=${told.proxy.bypass}`] : [];

/** tell has Puppeteer tell a page, which it does page by page. */
async function tell(page) {
  await page.authenticate(told.proxy);
  await page.setUserAgent({ userAgent: told.user_agent });
  await page.setViewport(told.viewport);
  await (await page.createCDPSession()).send('Emulation.setLocaleOverride', { locale: told.locale });
  await page.emulateTimezone(told.timezone);
  await page.setGeolocation(told.geolocation);
  await page.setExtraHTTPHeaders({ ...told.extra_headers, 'Accept-Language': told.locale });
}

const ways = {
  // All that storageState can be asked to keep.
  storageState: async (first, { state } = {}) => {
    if (first) {
      const context = await chromium.launchPersistentContext(dir, { ...playwright, ...asTold });
      await context.credentials.install();
      return {
        leave: async () => {
          const kept = await context.storageState({ indexedDB: true, opfs: true, credentials: true });
          await context.close();
          return { state: kept };
        },
      };
    }
    const browser = await chromium.launch(playwright);
    const context = await browser.newContext({ storageState: state });
    await context.newPage();
    return { leave: async () => ({ dir: await closing(browser) }) };
  },
  persistentContext: async (first) => {
    const context = await chromium.launchPersistentContext(dir, { ...playwright, ...(first && asTold) });
    return { leave: async () => { await context.close(); return { dir }; } };
  },
  userDataDir: async (first) => {
    const browser = await puppeteer.launch({
      executablePath, userDataDir: dir, headless: true, args: [...args, '--no-sandbox', ...(first ? through : [])], defaultViewport: null,
      ignoreDefaultArgs: ['--disable-extensions'],
    });
    // A page may have gone before it is told.
    if (first && told.proxy) browser.on('targetcreated', async (target) => { const page = await target.page(); if (page) await tell(page).catch(() => {}); });
    return { leave: async () => { await browser.close(); return { dir }; } };
  },
};

/** closing closes a browser whose directory goes with it, and gives a copy. */
async function closing(browser) {
  const session = await browser.newBrowserCDPSession();
  const { commandLine } = await session.send('SystemInfo.getInfo');
  const [, at] = /--user-data-dir=(\S+)/.exec(commandLine);
  const copy = await mkdtemp(`${dir}-left-`);
  await cp(at, copy, { recursive: true, filter: (name) => !name.includes('Singleton') });
  await browser.close();
  return copy;
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (line) => process.stdout.write(`${line}\n`);

let browser = await ways[way](true);
say(port);
await lines.next();
const kept = await browser.leave();
browser = await ways[way](false, kept);
say(port);
await lines.next();
say((await browser.leave()).dir);
process.exit(0);
