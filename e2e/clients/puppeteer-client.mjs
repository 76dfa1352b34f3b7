// Implements the client of steps.mjs with Puppeteer.
import puppeteer from 'puppeteer-core';

/** connect returns a client of the browser at a ws:// or http:// address. Its calls time out after timeout ms. */
export async function connect(endpoint, { headers, timeout }) {
  const address = endpoint.startsWith('ws') ? { browserWSEndpoint: endpoint } : { browserURL: endpoint };
  const browser = await puppeteer.connect({ ...address, headers, defaultViewport: null, protocolTimeout: timeout });
  return {
    pages: () => browser.pages(),
    newPage: () => browser.newPage(),
    fill: (page, selector, value) => page.locator(selector).fill(value),
    // Without an interval it polls with each frame, and a tab in the background has no frames.
    waitForFunction: async (page, expression, ms) =>
      (await page.waitForFunction(expression, { timeout: ms, polling: 50 })).jsonValue(),
    screenshot: (page, options) => page.screenshot(options),
    setFiles: async (page, selector, files) => (await page.$(selector)).uploadFile(...files),
    cdp: (page) => (page ?? browser.target()).createCDPSession(),
    disconnect: () => browser.disconnect(),
    onDisconnected: (then) => browser.once('disconnected', then),
    close: () => browser.close(),
    // Puppeteer has no API for downloads. Its users listen to CDP events.
    download: async (_page, click, ms) => {
      const session = await browser.target().createCDPSession();
      await session.send('Browser.setDownloadBehavior', {
        behavior: 'allow', downloadPath: '/tmp/downloads', eventsEnabled: true,
      });
      let name;
      session.on('Browser.downloadWillBegin', (e) => { name = e.suggestedFilename; });
      const ended = new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('timed out waiting for the download')), ms);
        session.on('Browser.downloadProgress', (e) => {
          if (e.state === 'inProgress') return;
          clearTimeout(timer);
          resolve({ state: e.state, guid: e.guid, file: e.filePath });
        });
      });
      await click();
      const last = await ended;
      return { name, ...last };
    },
  };
}
