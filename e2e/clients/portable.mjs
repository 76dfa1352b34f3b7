// Logs in with a client library and a separate Chrome, or opens a page with a state that was
// exported for that library.
//
// Input, as JSON on stdin: {tool, chrome, url, expression, dir?, state?}
//   tool        "playwright" or "puppeteer"
//   chrome      path of the binary to start
//   url         address to open; expression is then evaluated until it is truthy
//   dir         a user data directory to use and keep (Playwright)
//   state       a storageState, or an array of Puppeteer's cookies
// Output, as JSON on stdout: {value, state}
//   value       of the expression; state is the library's state afterwards
import { chromium } from 'playwright-core';
import puppeteer from 'puppeteer-core';
import { text } from 'node:stream/consumers';

const { tool, chrome: executablePath, url, expression, dir, state } = JSON.parse(await text(process.stdin));

const timeout = 120_000; // of each step: Chrome may start on a busy machine

const tools = {
  playwright: async () => {
    const options = { executablePath, chromiumSandbox: false, timeout };
    const context = dir
      ? await chromium.launchPersistentContext(dir, options)
      : await (await chromium.launch(options)).newContext({ storageState: state });
    const page = await context.newPage();
    page.setDefaultTimeout(timeout);
    await page.goto(url);
    const value = await (await page.waitForFunction(expression)).jsonValue();
    const saved = await context.storageState({ indexedDB: true });
    await (dir ? context : context.browser()).close();
    return { value, state: saved };
  },
  puppeteer: async () => {
    const browser = await puppeteer.launch({ executablePath, headless: true, args: ['--no-sandbox'], timeout });
    if (state) await browser.setCookie(...state);
    const page = await browser.newPage();
    page.setDefaultTimeout(timeout);
    await page.goto(url);
    const value = await (await page.waitForFunction(expression)).jsonValue();
    const saved = await browser.cookies();
    await browser.close();
    return { value, state: saved };
  },
};

process.stdout.write(JSON.stringify(await tools[tool]()), () => process.exit(0));
