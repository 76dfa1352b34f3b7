// Saves a browser's state with a method of a client library and restores it, for e2e/fidelity.
//
//   node libraries.mjs METHOD CHROME DIR EXTENSION OVERRIDES PORT
//
//   METHOD     storageState, persistentContext or userDataDir
//   DIR        the first user data directory
//   EXTENSION  the folder of an extension to load
//   OVERRIDES  of the first browser's pages, as JSON: {user_agent, viewport, timezone, locale,
//              geolocation, extra_headers, proxy}; null for none
//   PORT       on which the browsers serve DevTools
//
// It starts a browser and writes a line with its DevTools port. After a line on stdin it saves,
// ends the browser, restores in a new one and writes the new port. After a second line it closes
// the browser, writes the path of the last user data directory and exits.
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { cp, mkdtemp } from 'node:fs/promises';
import { createInterface } from 'node:readline';

const [method, executablePath, dir, extension, fields, port] = process.argv.slice(2);
const overrides = JSON.parse(fields) ?? {};

// Both libraries use their usual transport. The port is for the test, which reads the state
// over its own connection.
const args = [
  `--remote-debugging-port=${port}`, `--load-extension=${extension}`, `--disable-extensions-except=${extension}`,
];
const playwright = { executablePath, args, chromiumSandbox: false, ignoreDefaultArgs: ['--disable-extensions'] };

/** playwrightOverrides are the overrides as options of Playwright. */
const playwrightOverrides = {
  userAgent: overrides.user_agent, viewport: overrides.viewport, timezoneId: overrides.timezone, locale: overrides.locale,
  geolocation: overrides.geolocation, extraHTTPHeaders: overrides.extra_headers,
  proxy: overrides.proxy,
};

/** proxyFlags are the flags with which Puppeteer sets a proxy. */
const proxyFlags = overrides.proxy ? [`--proxy-server=${overrides.proxy.server}`, `--proxy-bypass-list=${overrides.proxy.bypass}`] : [];

/** override sets the overrides on one page with Puppeteer, which cannot set them for a whole browser. */
async function override(page) {
  await page.authenticate(overrides.proxy);
  await page.setUserAgent({ userAgent: overrides.user_agent });
  await page.setViewport(overrides.viewport);
  await (await page.createCDPSession()).send('Emulation.setLocaleOverride', { locale: overrides.locale });
  await page.emulateTimezone(overrides.timezone);
  await page.setGeolocation(overrides.geolocation);
  await page.setExtraHTTPHeaders({ ...overrides.extra_headers, 'Accept-Language': overrides.locale });
}

const methods = {
  // storageState with all its options.
  storageState: async (first, { state } = {}) => {
    if (first) {
      const context = await chromium.launchPersistentContext(dir, { ...playwright, ...playwrightOverrides });
      await context.credentials.install();
      return {
        leave: async () => {
          const saved = await context.storageState({ indexedDB: true, opfs: true, credentials: true });
          await context.close();
          return { state: saved };
        },
      };
    }
    const browser = await chromium.launch(playwright);
    const context = await browser.newContext({ storageState: state });
    await context.newPage();
    return { leave: async () => ({ dir: await copyAndClose(browser) }) };
  },
  persistentContext: async (first) => {
    const context = await chromium.launchPersistentContext(dir, { ...playwright, ...(first && playwrightOverrides) });
    return { leave: async () => { await context.close(); return { dir }; } };
  },
  userDataDir: async (first) => {
    const browser = await puppeteer.launch({
      executablePath, userDataDir: dir, headless: true, args: [...args, '--no-sandbox', ...(first ? proxyFlags : [])], defaultViewport: null,
      ignoreDefaultArgs: ['--disable-extensions'],
    });
    // A page may close before its overrides are set.
    if (first && overrides.proxy) browser.on('targetcreated', async (target) => { const page = await target.page(); if (page) await override(page).catch(() => {}); });
    return { leave: async () => { await browser.close(); return { dir }; } };
  },
};

/** copyAndClose closes a browser and returns a copy of its temporary user data directory, which the close removes. */
async function copyAndClose(browser) {
  const session = await browser.newBrowserCDPSession();
  const { commandLine } = await session.send('SystemInfo.getInfo');
  const [, at] = /--user-data-dir=(\S+)/.exec(commandLine);
  const copy = await mkdtemp(`${dir}-left-`);
  await cp(at, copy, { recursive: true, filter: (name) => !name.includes('Singleton') });
  await browser.close();
  return copy;
}

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const write = (line) => process.stdout.write(`${line}\n`);

let browser = await methods[method](true);
write(port);
await lines.next();
const saved = await browser.leave();
browser = await methods[method](false, saved);
write(port);
await lines.next();
write((await browser.leave()).dir);
process.exit(0);
