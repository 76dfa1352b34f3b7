// Logs in through the form of the site, with Puppeteer: the same as login.mjs.
import puppeteer from 'puppeteer-core';
import { session } from './session.mjs';

const site = `http://127.0.0.1:${process.env.PORT ?? 8090}/`;

const browser = await puppeteer.connect({ browserWSEndpoint: session.cdp_url, defaultViewport: null });
const [page] = await browser.pages();
await page.goto(site);
await page.type('[name=user]', 'ada');
await page.type('[name=password]', 'a secret');
await page.click('button');
await page.waitForSelector('::-p-text(you are logged in)'); // save only after this: a click does not wait for the login
console.log(await page.$eval('h1', (heading) => heading.textContent));
await browser.disconnect(); // the session continues
