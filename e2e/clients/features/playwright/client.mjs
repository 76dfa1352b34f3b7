// Connects Playwright for ../run.mjs, and lists its features.
import { chromium } from 'playwright-core';
import clients from './clients.mjs';
import emulation from './emulation.mjs';
import files from './files.mjs';
import frames from './frames.mjs';
import input from './input.mjs';
import locators from './locators.mjs';
import navigation from './navigation.mjs';
import network from './network.mjs';
import pages from './pages.mjs';
import pictures from './pictures.mjs';
import policy from './policy.mjs';
import scripts from './scripts.mjs';
import storage from './storage.mjs';

export const features = { ...navigation, ...pages, ...locators, ...input, ...files, ...frames, ...scripts, ...network, ...storage, ...emulation, ...pictures, ...policy, ...clients };

/** connect returns a client: tools(limit) returns what one feature gets, whose calls may take limit ms, close(), which closes what the feature opened, and forget(), after which no feature shares a page with it. */
export async function connect(endpoint, timeout) {
  const browser = await chromium.connectOverCDP(endpoint, { timeout });
  const [context] = browser.contexts(); // the one that has the environment
  let shared; // the page that features share
  return {
    tools: (limit) => {
      context.setDefaultTimeout(limit);
      const opened = [], before = new Set(context.pages());
      return {
        tools: {
          browser, context, endpoint,
          page: async () => {
            const page = await context.newPage();
            opened.push(page);
            return page;
          },
          connect: async (options) => {
            const another = await chromium.connectOverCDP(endpoint, { timeout, ...options });
            opened.push(another);
            return another;
          },
          reused: async () => {
            if (!shared || shared.isClosed()) shared = await context.newPage();
            return shared;
          },
          open: async (options) => {
            const made = await browser.newContext(options);
            opened.push(made);
            made.setDefaultTimeout(limit);
            return made.newPage();
          },
        },
        forget: async () => {
          await shared?.close();
        },
        close: async () => {
          const popups = context.pages().filter((page) => !before.has(page) && page !== shared && !opened.includes(page));
          await Promise.all([...opened, ...popups].map((one) => one.close()));
        },
      };
    },
  };
}
