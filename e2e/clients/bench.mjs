// Times client libraries, for e2e/bench. The process runs and has loaded its libraries before
// any clock starts.
//
// Input: one JSON object a line on stdin, {do, ...}. They are done one after the other.
// Output: one line for each, {value} or {error}. Times are milliseconds since the start of the
// operation, by name; done is when the page was checked.
//
//   {do: "restore", base, key, body, url}    create a session and open the page
//                                            → {times: {created, connected, page, done}, made}
//   {do: "cycle", base, key, body, url}      the same, and delete the session → {times: {done}}
//   {do: "warm", name, chrome}               start a browser and keep it → null
//   {do: "storageState", name, state, url}   open the page in that browser → {times: {done}}
//   {do: "persistentContext", chrome, dir, url}, {do: "userDataDir", chrome, dir, url}
//                                            start a browser on a profile and open the page
//   {do: "launch", chrome, url}              start a browser, open the page, close it
//   {do: "export", chrome, dir, indexedDB}   the storageState of a profile
//   {do: "cool", name}                       close that browser
//
// The page is right if its element #me has the text that the site writes for an account. For
// cycle and launch it only has to load.
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { createInterface } from 'node:readline';

const warm = new Map();

/** clock starts a clock. mark stores the time since then under a name. */
function clock() {
  const start = performance.now();
  const times = {};
  const mark = (name) => { times[name] = performance.now() - start; };
  return { times, mark };
}

/** call makes one API request to Stasis. */
async function call(base, key, method, path, body) {
  const answer = await fetch(base + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

/** front returns a browser's first page. It waits until the page has an address, because Puppeteer shows it only then. */
async function front(browser) {
  const [page] = await browser.pages();
  return page ?? (await browser.waitForTarget((target) => target.type() === 'page')).page();
}

/** checkLogin opens the page and throws if it is not logged in. It works with both libraries. */
async function checkLogin(page, url) {
  await page.goto(url);
  const text = await page.evaluate(() => document.querySelector('#me')?.textContent);
  if (!text?.startsWith('Logged in as ')) throw new Error(`not logged in: ${text}`);
}

const playwright = { chromiumSandbox: false };
const own = { headless: true, args: ['--no-sandbox'], defaultViewport: null };

const operations = {
  restore: async ({ base, key, body, url }) => {
    const { times, mark } = clock();
    const made = await call(base, key, 'POST', '/v1/sessions', body);
    mark('created');
    const browser = await puppeteer.connect({ browserWSEndpoint: made.cdp_url, defaultViewport: null });
    mark('connected');
    const page = await front(browser);
    mark('page');
    await (body.restore_from_session_id || body.restore_from_environment_id || body.restore_default_environment_from_user_id
      ? checkLogin(page, url) : page.goto(url));
    mark('done');
    await browser.disconnect();
    return { times, made };
  },
  cycle: async ({ base, key, body, url }) => {
    const { times, mark } = clock();
    const made = await call(base, key, 'POST', '/v1/sessions', body);
    const browser = await puppeteer.connect({ browserWSEndpoint: made.cdp_url, defaultViewport: null });
    const page = await front(browser);
    await page.goto(url);
    await browser.disconnect();
    await call(base, key, 'DELETE', `/v1/sessions/${made.session_id}?save_snapshot_mode=none`);
    mark('done');
    return { times };
  },
  warm: async ({ name, chrome: executablePath }) => {
    warm.set(name, await chromium.launch({ ...playwright, executablePath }));
    return null;
  },
  cool: async ({ name }) => {
    await warm.get(name)?.close();
    warm.delete(name);
    return null;
  },
  storageState: async ({ name, state, url }) => {
    const browser = warm.get(name);
    const { times, mark } = clock();
    const context = await browser.newContext({ storageState: state });
    const page = await context.newPage();
    await checkLogin(page, url);
    mark('done');
    await context.close();
    return { times };
  },
  persistentContext: async ({ chrome: executablePath, dir, url }) => {
    const { times, mark } = clock();
    const context = await chromium.launchPersistentContext(dir, { ...playwright, executablePath });
    const page = context.pages()[0] ?? (await context.newPage());
    await checkLogin(page, url);
    mark('done');
    await context.close();
    return { times };
  },
  userDataDir: async ({ chrome: executablePath, dir, url }) => {
    const { times, mark } = clock();
    const browser = await puppeteer.launch({ ...own, executablePath, userDataDir: dir });
    const [page] = await browser.pages();
    await checkLogin(page, url);
    mark('done');
    await browser.close();
    return { times };
  },
  launch: async ({ chrome: executablePath, url }) => {
    const { times, mark } = clock();
    const browser = await puppeteer.launch({ ...own, executablePath });
    const [page] = await browser.pages();
    await page.goto(url);
    await browser.close();
    mark('done');
    return { times };
  },
  export: async ({ chrome: executablePath, dir, indexedDB }) => {
    const context = await chromium.launchPersistentContext(dir, { ...playwright, executablePath });
    const state = await context.storageState({ indexedDB });
    await context.close();
    return state;
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
for (const browser of warm.values()) await browser.close();
process.exit(0);
