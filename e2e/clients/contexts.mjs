// Uses browser contexts of a session as the users of Playwright and Puppeteer do.
//
// Input, as JSON on stdin: {tool, endpoint, site, behind, proxy, har, brief, timeout_ms}
//   tool    "playwright" or "puppeteer"
//   site    a page of a site; it is read but not written in the default context
//   behind  a URL that only the HTTP proxy can reach
//   proxy   the proxy's URL
//   har     the file that Playwright records a context to
//   brief   only two contexts with one page each, which are written to
// Output, as JSON on stdout: {values} or {error}
//   values: what was read, by name; see e2e/journey_contexts_test.go
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { until } from './steps.mjs';

const { tool, endpoint, site, behind, proxy, har, brief, timeout_ms: timeout } = JSON.parse(await text(process.stdin));

// Each tool loads only its own library, which takes most of the time of a short script.
// It returns functions: pages in the default context, and new contexts of several kinds.
const tools = {
  playwright: async () => {
    const { chromium, devices } = await import('playwright-core');
    const browser = await chromium.connectOverCDP(endpoint, { timeout });
    const [standard] = browser.contexts();
    const made = async (options) => {
      const context = await browser.newContext(options);
      context.setDefaultTimeout(timeout);
      return { page: () => context.newPage(), close: () => context.close() };
    };
    return {
      page: () => standard.newPage(),
      context: () => made({}),
      mobile: () => made(devices['Pixel 5']),
      proxied: () => made({ proxy: { server: proxy, bypass: 'nowhere.test' } }),
      recorded: () => made({ recordHar: { path: har } }),
      leave: () => {},
    };
  },
  puppeteer: async () => {
    const { default: puppeteer, KnownDevices } = await import('puppeteer-core');
    const browser = await puppeteer.connect({ browserWSEndpoint: endpoint, defaultViewport: null, protocolTimeout: timeout });
    const made = async (options, prepare = async () => {}) => {
      const context = await browser.createBrowserContext(options);
      const page = async () => {
        const p = await context.newPage();
        p.setDefaultTimeout(timeout);
        await prepare(p);
        return p;
      };
      return { page, close: () => context.close() };
    };
    return {
      page: () => browser.newPage(),
      context: () => made({}),
      mobile: () => made({}, (page) => page.emulate(KnownDevices['Pixel 5'])),
      proxied: () => made({ proxyServer: proxy, proxyBypassList: ['nowhere.test'] }),
      leave: () => browser.disconnect(),
    };
  },
};

const read = (page) => page.evaluate(async () => {
  const db = await new Promise((done, failed) => {
    const open = indexedDB.open('who');
    open.onupgradeneeded = () => open.result.createObjectStore('s');
    open.onsuccess = () => done(open.result);
    open.onerror = failed;
  });
  const stored = await new Promise((done) => {
    const get = db.transaction('s').objectStore('s').get('k');
    get.onsuccess = () => done(get.result);
  });
  db.close();
  return [document.cookie, localStorage.who, stored].map((v) => v ?? '').join('|');
});

const write = (page, who) => page.evaluate(async (name) => {
  document.cookie = `who=${name}; max-age=3600`;
  localStorage.who = name;
  const db = await new Promise((done) => {
    const open = indexedDB.open('who');
    open.onsuccess = () => done(open.result);
  });
  await new Promise((done) => {
    const put = db.transaction('s', 'readwrite');
    put.objectStore('s').put(name, 'k');
    put.oncomplete = done;
  });
  db.close();
}, who);

/** openPage opens a page at an address in a context. */
async function openPage(context, url = site) {
  const page = await context.page();
  await page.goto(url, { timeout });
  return page;
}

async function use(client) {
  const values = {};
  const standard = await openPage(client);
  values.before = await read(standard);

  // Two contexts show the site at once, with two pages each.
  const [a, b] = await Promise.all([client.context(), client.context()]);
  const pages = await Promise.all((brief ? [a, b] : [a, a, b, b]).map((context) => openPage(context)));
  values.made = await Promise.all(pages.map(read));
  await write(pages[0], 'a');
  await write(pages.at(-1), 'b');
  // The other page of a context learns of a write a moment later.
  await until('the writes in every page', timeout, async () => (await Promise.all(pages.map((page) => page.evaluate(() => localStorage.who)))).every(Boolean));
  values.written = await Promise.all(pages.map(read));
  if (!brief) {
    await more(client, a, b, values);
  }

  await standard.reload({ timeout });
  values.after = await read(standard);
  await standard.close();
  await client.leave();
  return values;
}

/** more uses further contexts, of several kinds, and adds what it reads to values. */
async function more(client, a, b, values) {
  // After one is closed, the other still has its data, and a new one has none.
  await a.close();
  const c = await client.context();
  const [third, again] = await Promise.all([openPage(c), openPage(b)]);
  values.closed = [await read(third), await read(again)];
  await Promise.all([b.close(), c.close()]);

  const mobile = await client.mobile();
  const phone = await openPage(mobile);
  values.mobile = await phone.evaluate(() => `${innerWidth < 600} ${navigator.maxTouchPoints > 0} ${/Android/.test(navigator.userAgent)}`);
  await mobile.close();

  const proxied = await client.proxied();
  const beyond = await openPage(proxied, behind);
  values.proxied = await beyond.evaluate(() => document.body.textContent);
  await proxied.close();

  if (client.recorded) {
    const recorded = await client.recorded();
    await openPage(recorded);
    await recorded.close();
    const { log } = JSON.parse(await readFile(har, 'utf8'));
    values.har = log.entries.filter((e) => e.request.url === site).map((e) => `${e.response.status} ${e.response.content.size > 0}`);
  }
}

let output;
try {
  output = { values: await use(await tools[tool]()) };
} catch (err) {
  output = { error: String(err?.stack ?? err) };
}
process.stdout.write(JSON.stringify(output), () => process.exit(output.error ? 1 : 0));
