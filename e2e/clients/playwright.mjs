// Drives a browser with Playwright; see steps.mjs for the input and output.
import { basename } from 'node:path';
import { chromium } from 'playwright-core';
import { main } from './steps.mjs';

await main(async (endpoint, { headers, timeout }) => {
  const browser = await chromium.connectOverCDP(endpoint, { headers, timeout });
  const [context] = browser.contexts();
  context.setDefaultTimeout(timeout);
  return {
    pages: async () => context.pages(),
    newPage: () => context.newPage(),
    fill: (page, selector, value) => page.fill(selector, value),
    // Without an interval it polls with each frame, and a tab in the background has no frames.
    waitForFunction: async (page, expression, ms) =>
      (await page.waitForFunction(expression, null, { timeout: ms, polling: 50 })).jsonValue(),
    screenshot: (page, options) => page.screenshot(options),
    setFiles: (page, selector, files) => page.setInputFiles(selector, files),
    cdp: (page) => (page ? context.newCDPSession(page) : browser.newBrowserCDPSession()),
    // Playwright has no disconnect. The connection ends with this process.
    disconnect: async () => {},
    close: () => browser.close(),
    download: async (page, click, ms) => {
      const [download] = await Promise.all([page.waitForEvent('download', { timeout: ms }), click()]);
      const failure = await download.failure();
      // path() is where the file would be on this machine. Its last element is the GUID.
      return { name: download.suggestedFilename(), state: failure ?? 'completed', guid: basename(await download.path()) };
    },
  };
});
