// Opens the site and prints its text, with Puppeteer: the same as visit.mjs.
import puppeteer from 'puppeteer-core';
import { session } from './session.mjs';

const site = `http://127.0.0.1:${process.env.PORT ?? 8090}/`;

const browser = await puppeteer.connect({ browserWSEndpoint: session.cdp_url, defaultViewport: null });
const [page] = await browser.pages();
await page.goto(site);
console.log(await page.$eval('body', (body) => body.innerText));
await browser.disconnect();
