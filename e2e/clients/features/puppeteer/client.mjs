// Connects Puppeteer for ../run.mjs, and lists its features.
import puppeteer from 'puppeteer-core';
import emulation from './emulation.mjs';
import files from './files.mjs';
import frames from './frames.mjs';
import input from './input.mjs';
import navigation from './navigation.mjs';
import network from './network.mjs';
import pages from './pages.mjs';
import pictures from './pictures.mjs';
import policy from './policy.mjs';
import scripts from './scripts.mjs';

export const features = { ...navigation, ...pages, ...input, ...files, ...frames, ...scripts, ...network, ...emulation, ...pictures, ...policy };

/** connect returns a client: tools(limit) returns what one feature gets, whose pages wait for limit ms, close(), which closes what the feature opened, and forget(), after which no feature shares a page with it. */
export async function connect(endpoint, timeout) {
  const address = endpoint.startsWith('ws') ? { browserWSEndpoint: endpoint } : { browserURL: endpoint };
  const options = { ...address, defaultViewport: null, protocolTimeout: timeout };
  const browser = await puppeteer.connect(options);
  const context = browser.defaultBrowserContext();
  let limit = timeout;
  const open = async (from) => {
    const page = await from.newPage();
    page.setDefaultTimeout(limit);
    return page;
  };
  let shared; // the page that features share
  return {
    tools: (ofFeature) => {
      limit = ofFeature;
      const opened = [], before = context.pages();
      return {
        tools: {
          browser, context, endpoint,
          page: () => open(browser),
          reused: async () => {
            if (!shared || shared.isClosed()) shared = await open(browser);
            return shared;
          },
          open: async (more) => {
            const made = await browser.createBrowserContext(more);
            opened.push(made);
            return open(made);
          },
          connect: async (more) => {
            const another = await puppeteer.connect({ ...options, ...more });
            opened.push({ close: () => another.disconnect() });
            return another;
          },
        },
        forget: async () => {
          await shared?.close();
        },
        close: async () => {
          const first = await before;
          const pages = (await context.pages()).filter((page) => !first.includes(page) && page !== shared);
          await Promise.all([...pages, ...opened].map((one) => one.close()));
        },
      };
    },
  };
}
