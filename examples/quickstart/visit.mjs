// Opens the site and prints its text, with Playwright.
import { chromium } from 'playwright-core';
import { session } from './session.mjs';

const site = `http://127.0.0.1:${process.env.PORT ?? 8090}/`;

const browser = await chromium.connectOverCDP(session.cdp_url);
const page = browser.contexts()[0].pages()[0];
await page.goto(site);
console.log(await page.innerText('body'));
await browser.close();
