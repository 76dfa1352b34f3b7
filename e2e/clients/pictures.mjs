// Takes the pictures of the console and of the live view that the documents show.
//
// Input, as JSON on stdin: {url, key, chrome, folder, live, snapshot, sessions}
//   url, key   of the daemon
//   chrome     path of the Chrome that takes the pictures
//   folder     where to write them
//   live       address of a live view
//   snapshot   ID of a snapshot
//   sessions   how many sessions run
// Output: a line for each picture, with its size.
import { join } from 'node:path';
import { stat } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import puppeteer from 'puppeteer-core';
import { until } from './steps.mjs';

const input = JSON.parse(await text(process.stdin));
const patience = 120_000;
const wait = (what, probe) => until(what, patience, probe);

// The documents are read on computers, and on GitHub for a long time: each picture stays small.
const mostBytes = 80 * 1024;

/** take writes a picture of the page. */
async function take(page, name) {
  const path = join(input.folder, `${name}.webp`);
  await page.screenshot({ path, type: 'webp', quality: 80 });
  const { size } = await stat(path);
  if (size > mostBytes) throw new Error(`${path} has ${size} bytes, more than ${mostBytes}`);
  process.stdout.write(`${name}.webp ${Math.ceil(size / 1024)} KiB\n`);
}

/** sessions shows the list, when it has all pictures and the memory of each session. */
async function sessions(page) {
  await wait('the pictures and the memory', async () => {
    await page.goto(`${input.url}/console/`, { waitUntil: 'networkidle0' });
    return page.evaluate((n) => document.querySelectorAll('.card').length === n
      && [...document.querySelectorAll('.card')].every((card) => card.querySelector('img')?.naturalWidth > 100 && card.textContent.includes('MiB')), input.sessions);
  });
}

const browser = await puppeteer.launch({ executablePath: input.chrome, args: ['--no-sandbox'] });
try {
  const [page] = await browser.pages();
  page.setDefaultNavigationTimeout(patience);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
  await page.setViewport({ width: 1280, height: 740 });
  await page.goto(`${input.url}/console/`);
  await page.type('#key', input.key);
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  await sessions(page);
  await take(page, 'console-sessions');
  await page.goto(`${input.url}/console/snapshots/${input.snapshot}`);
  await take(page, 'console-snapshot');
  await page.setViewport({ width: 375, height: 760, isMobile: true, hasTouch: true, deviceScaleFactor: 1 });
  await sessions(page);
  await take(page, 'console-phone');

  await page.setViewport({ width: 1280, height: 640 });
  await page.goto(input.live);
  await wait('the live view', () => page.evaluate(() => document.getElementById('picture')?.width > 600 && document.getElementById('role')?.textContent === 'You have control'));
  await wait('a sharp picture of all of the window', async () => {
    const size = () => page.evaluate(() => `${picture.width} ${picture.height} ${innerHeight}`);
    const before = await size();
    await new Promise((resolve) => setTimeout(resolve, 2500)); // the view is sharp 1.5 s after the last change
    return before === await size();
  });
  await take(page, 'live-view');
} finally {
  await browser.close();
}
