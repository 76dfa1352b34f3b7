// Types into pages right after they have loaded, for e2e/typing.
//
// Input: one JSON object a line on stdin, {do, ...}. They are done one after the other.
// Output: one line for each, {value} or {error}.
//
//   {do: "type", tool, endpoint, pages, text}  connect to a ws:// address, go to each page and type into
//                                              its field → {values}, the value of each field then
//     tool   "playwright" or "puppeteer"
//     pages  [{url, until, tab}]: until is the event that goto waits for, tab "new" opens a new tab
//   {do: "launch", chrome, args}               start a browser → {endpoint}; args are all its flags except
//                                              --remote-debugging-port and --no-sandbox
//   {do: "close"}                              close that browser → null
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { createInterface } from 'node:readline';

const timeout = 60_000;

// Each tool connects to a browser and returns functions: the front page, a new page, and disconnect.
const tools = {
  playwright: async (endpoint) => {
    const browser = await chromium.connectOverCDP(endpoint, { timeout });
    const [context] = browser.contexts();
    return {
      front: async () => context.pages()[0] ?? context.waitForEvent('page'),
      open: () => context.newPage(),
      leave: () => browser.close(), // only disconnects, because Playwright did not start this browser
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
