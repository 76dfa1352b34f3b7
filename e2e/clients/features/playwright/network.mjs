// Features of Playwright that watch and change what pages send and receive.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const fetched = (p, path) => p.evaluate(async (at) => (await fetch(at)).text(), path);
const echoed = async (p, init = {}) => p.evaluate(async (i) => (await fetch('/echo', i)).json(), init);

export default {
  'route.fulfill': async ({ visit, dir }) => {
    const p = await visit('');
    await p.route('**/data.json', (route) => route.fulfill({ json: { from: 'the test' } }));
    assert.equal(await fetched(p, '/data.json'), '{"from":"the test"}');
    await p.unroute('**/data.json');
    assert.match(await fetched(p, '/data.json'), /the site/);
    assert.ok(dir);
  },
  'route.fulfill of a document': async ({ page }) => {
    const p = await page();
    await p.route('https://not.test/**', (route) => route.fulfill({ contentType: 'text/html', body: '<title>made up</title>' }));
    await p.goto('https://not.test/page');
    assert.equal(await p.title(), 'made up');
  },
  'route.abort': async ({ page, html }) => {
    const p = await page();
    await p.route(/\.(css|svg)$/, (route) => route.abort());
    const failed = p.waitForEvent('requestfailed');
    await p.goto(html('<link rel=stylesheet href=/style.css><img src=/image.svg onerror="document.title = 1">'));
    assert.match((await failed).failure().errorText, /ERR_FAILED/);
  },
  'route.continue with changes': async ({ visit }) => {
    const p = await visit('');
    await p.route('**/echo', (route, request) => route.continue({ method: 'POST', postData: 'changed', headers: { ...request.headers(), 'x-added': 'yes' } }));
    const { method, body, headers } = await echoed(p);
    assert.deepEqual([method, body, headers['x-added']], ['POST', 'changed', 'yes']);
  },
  'route.fetch': async ({ visit }) => {
    const p = await visit('');
    await p.route('**/data.json', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...await response.json(), more: 1 } });
    });
    assert.equal(await fetched(p, '/data.json'), '{"from":"the site","more":1}');
  },
  'context.route, with pop-ups': async ({ context, visit }) => {
    await context.route('**/next.html', (route) => route.fulfill({ contentType: 'text/html', body: '<title>routed</title>' }));
    try {
      const p = await visit('<button onclick="window.open(\'/next.html\')">open</button>');
      const [popup] = await Promise.all([p.waitForEvent('popup'), p.click('button')]);
      await popup.waitForLoadState();
      assert.equal(await popup.title(), 'routed');
    } finally {
      await context.unrouteAll();
    }
  },
  'requests of a frame of another site are routed': async ({ page, html, other }) => {
    const p = await page();
    await p.route('**/frame.html', (route) => route.fulfill({ contentType: 'text/html', body: '<title>routed</title>' }));
    await p.goto(html(`<iframe src="${other}/frame.html"></iframe>`));
    assert.equal(await p.frames()[1].title(), 'routed');
  },
  'routeFromHAR, recordHar': async ({ open, html, dir }) => {
    const har = join(dir, 'site.har');
    const p = await open({ recordHar: { path: har } });
    await p.goto(html('<script src=/script.js></script>'));
    await p.context().close();
    const { log } = JSON.parse(await readFile(har, 'utf8'));
    assert.deepEqual(log.entries.map((e) => `${e.response.status} ${e.response.content.text.length > 0}`), ['200 true', '200 true']);
    const again = await open({ offline: true });
    await again.routeFromHAR(har);
    await again.goto(html('<script src=/script.js></script>'));
    assert.equal(await again.evaluate(() => window.used()), 1);
  },
  "page.on('request'), page.on('response'), bodies": async ({ reuse, site }) => {
    const p = await reuse('');
    const [request, response, finished] = await Promise.all([
      p.waitForRequest('**/echo'), p.waitForResponse((r) => r.url() === `${site}/echo`), p.waitForEvent('requestfinished'),
      echoed(p, { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } }),
    ]);
    assert.deepEqual([request.method(), request.postDataJSON(), request.resourceType(), finished], ['POST', { a: 1 }, 'fetch', request]);
    assert.deepEqual([response.status(), (await response.json()).body, (await response.allHeaders())['content-type']], [200, '{"a":1}', 'application/json']);
    assert.ok((await request.allHeaders())['user-agent']);
    assert.equal((await response.serverAddr()).ipAddress, '127.0.0.1');
    assert.ok((await request.sizes()).responseBodySize > 0);
    assert.ok(request.timing().responseEnd >= 0);
  },
  "page.on('websocket')": async ({ reuse, socket }) => {
    const p = await reuse('');
    const [ws] = await Promise.all([p.waitForEvent('websocket'), p.evaluate((url) => {
      const made = new WebSocket(url);
      made.onopen = () => made.send('hello');
    }, socket)]);
    const sent = ws.waitForEvent('framesent');
    const { payload } = await ws.waitForEvent('framereceived');
    assert.deepEqual([ws.url(), payload], [socket, 'hello']);
    sent.catch(() => {}); // it may have been sent before
  },
  'page.routeWebSocket': async ({ page, html }) => {
    const p = await page();
    await p.routeWebSocket('ws://not.test/', (ws) => ws.onMessage((m) => ws.send(`${m} back`)));
    await p.goto(html('<script>const w = new WebSocket("ws://not.test/"); w.onopen = () => w.send("there"); w.onmessage = (e) => { document.title = e.data; }</script>'));
    await p.waitForFunction(() => document.title === 'there back', null, { polling: 50 });
  },
  'setExtraHTTPHeaders': async ({ visit }) => {
    const p = await visit('');
    await p.setExtraHTTPHeaders({ 'x-extra': 'yes' });
    assert.equal((await echoed(p)).headers['x-extra'], 'yes');
  },
  'httpCredentials': async ({ open, site }) => {
    const p = await open({ httpCredentials: { username: 'ada', password: 'secret' } });
    assert.equal((await p.goto(`${site}/private`)).status(), 200);
  },
  'context.setOffline': async ({ context, reuse }) => {
    const p = await reuse('');
    await context.setOffline(true);
    try {
      assert.equal(await p.evaluate(() => navigator.onLine), false);
      await assert.rejects(p.reload(), /ERR_INTERNET_DISCONNECTED/);
    } finally {
      await context.setOffline(false);
    }
    assert.equal((await p.reload()).status(), 200);
  },
  'context.request': async ({ context, reuse, site }) => {
    const p = await reuse('');
    await p.goto(`${site}/cookie?set=api=1`);
    const response = await context.request.post(`${site}/echo`, { data: { a: 1 } });
    const { headers, body } = await response.json();
    assert.match(headers.cookie, /api=1/);
    assert.equal(body, '{"a":1}');
    await context.clearCookies({ name: 'api' });
  },
  'newContext({proxy})': async ({ open, proxy }) => {
    const p = await open({ proxy: { server: proxy } });
    await p.goto('http://behind.test/');
    assert.equal(await p.title(), 'through the proxy');
  },
  'newContext({ignoreHTTPSErrors})': async ({ page, open, tls }) => {
    await assert.rejects((await page()).goto(tls), /ERR_CERT_AUTHORITY_INVALID/);
    const p = await open({ ignoreHTTPSErrors: true });
    const response = await p.goto(tls);
    assert.equal(response.status(), 200);
    assert.match((await response.securityDetails()).protocol, /TLS/);
  },
};
