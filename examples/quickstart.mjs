// Log in once, save the browser, restore it logged in. Needs Node 20 and puppeteer-core.
import { createServer } from 'node:http';
import puppeteer from 'puppeteer-core';

const BASE = process.env.STASIS_URL ?? 'http://127.0.0.1:8080';
const KEY = process.env.STASIS_API_KEY ?? 'the key that make run printed';

// A site with a login form, so that this script runs unchanged. Use your own instead.
const site = createServer((request, response) => {
  const known = request.headers.cookie?.includes('sid=42');
  if (request.method === 'POST') {
    response.writeHead(303, { 'Set-Cookie': 'sid=42; HttpOnly', Location: '/' }).end();
  } else {
    response.setHeader('Content-Type', 'text/html').end(known
      ? '<h1>Hello, Ada, you are logged in</h1>'
      : '<form method="post"><input name="user"><input name="password" type="password"><button>Log in</button></form>');
  }
});
await new Promise((listening) => site.listen(0, '127.0.0.1', listening));
const SITE = `http://127.0.0.1:${site.address().port}/`;

async function stasis(method, path, body) {
  const answer = await fetch(BASE + path, {
    method,
    headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const data = await answer.json();
  if (!answer.ok) throw new Error(`${data.code}: ${data.message}`);
  return data;
}

// 1. A session is a real Chrome. Log in through its cdp_url.
const first = await stasis('POST', '/v1/sessions', { agent_name: 'agi-0' });
let browser = await puppeteer.connect({ browserWSEndpoint: first.cdp_url, defaultViewport: null });
let [page] = await browser.pages();
await page.goto(SITE);
await page.type('[name=user]', 'ada');
await page.type('[name=password]', 'a secret');
await Promise.all([page.waitForNavigation(), page.click('button')]);
await browser.disconnect();

// 2. End it. The whole environment is saved and becomes the user's default.
const ended = await stasis('DELETE', `/v1/sessions/${first.session_id}?save_snapshot_mode=filesystem&save_as_default=true`);
console.log('saved snapshot', ended.snapshot.id);

// 3. Any later session can start from there: today, or after a restart of the daemon.
const second = await stasis('POST', '/v1/sessions', {
  agent_name: 'agi-0',
  restore_default_environment_from_user_id: first.user_id,
});
browser = await puppeteer.connect({ browserWSEndpoint: second.cdp_url, defaultViewport: null });
[page] = await browser.pages();
await page.goto(SITE);
console.log(await page.$eval('h1', (heading) => heading.textContent));
await browser.disconnect();

await stasis('DELETE', `/v1/sessions/${second.session_id}`);
site.close();
