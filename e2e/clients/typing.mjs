// Types into pages at once after they have loaded, for e2e/typing.
//
// In, one JSON object a line on stdin: {do, ...}, done one after the other.
// Out, one line each: {value} or {error}.
//
//   {do: "type", tool, endpoint, pages, text}  in a browser at a ws:// address: goto each page and type
//                                              into its field; → {values}, what each field has then
//     tool   "playwright" or "puppeteer"
//     pages  [{url, until, tab}]: until is the event that goto waits for, tab "new" opens a tab
//   {do: "launch", chrome, args}               start a browser → {endpoint}; these are all its flags but the
//                                              port's and those that this process adds to run as root
//   {do: "close"}                              close that browser → null
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { createInterface } from 'node:readline';

const timeout = 60_000;

// connect gives what typing needs of a browser: its front page, a new one, and how to let go of it.
const tools = {
  playwright: async (endpoint) => {
    const browser = await chromium.connectOverCDP(endpoint, { timeout });
    const [context] = browser.contexts();
    return {
      front: async () => context.pages()[0] ?? context.waitForEvent('page'),
      open: () => context.newPage(),
      leave: () => browser.close(), // it lets go of a browser that it did not start
    };
  },
  puppeteer: async (endpoint) => {
    const browser = await puppeteer.connect({ browserWSEndpoint: endpoint, defaultViewport: null, protocolTimeout: timeout });
    return {
      front: async () => (await browser.pages())[0] ?? (await browser.waitForTarget((target) => target.type() === 'page')).page(),
      open: () => browser.newPage(),
      leave: () => browser.disconnect(),
    };
  },
};

let launched;

const operations = {
  type: async ({ tool, endpoint, pages, text }) => {
    const browser = await tools[tool](endpoint);
    let page = await browser.front();
    const values = [];
    for (const { url, until, tab } of pages) {
      if (tab === 'new') page = await browser.open();
      await page.goto(url, { waitUntil: until, timeout });
      await page.type('#field', text);
      values.push(await page.evaluate(() => document.querySelector('#field').value));
    }
    await browser.leave();
    return { values };
  },
  launch: async ({ chrome: executablePath, args }) => {
    launched = await puppeteer.launch({ executablePath, ignoreDefaultArgs: true, args: [...args, '--no-sandbox', '--remote-debugging-port=0', 'about:blank'] });
    return { endpoint: launched.wsEndpoint() };
  },
  close: async () => {
    await launched.close();
    return null;
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  let answer;
  try {
    answer = { value: await operations[order.do](order) };
  } catch (err) {
    answer = { error: String(err?.stack ?? err) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit(0);
