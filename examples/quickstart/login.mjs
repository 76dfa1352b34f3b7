// Logs in through the form of the site, with Playwright.
import { chromium } from 'playwright-core';
import { session } from './session.mjs';

const site = `http://127.0.0.1:${process.env.PORT ?? 8090}/`;

const browser = await chromium.connectOverCDP(session.cdp_url);
const page = browser.contexts()[0].pages()[0];
await page.goto(site);
await page.fill('[name=user]', 'ada');
await page.fill('[name=password]', 'a secret');
await page.click('button');
await page.getByText('you are logged in').waitFor(); // save only after this: a click does not wait for the login
console.log(await page.textContent('h1'));
await browser.close(); // closes the connection; the session continues
