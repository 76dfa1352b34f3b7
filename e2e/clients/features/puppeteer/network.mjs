// Features of Puppeteer that watch and change what pages send and receive.
import assert from 'node:assert/strict';

const echoed = (p, init = {}) => p.evaluate(async (i) => (await fetch('/echo', i)).json(), init);

/** intercept gives each request of a page to a function. */
async function intercept(p, act) {
  await p.setRequestInterception(true);
  p.on('request', act);
}

export default {
  'setRequestInterception: respond': async ({ page }) => {
    const p = await page();
    await intercept(p, (r) => r.respond({ contentType: 'text/html', body: '<title>made up</title>' }));
    await p.goto('https://not.test/page');
    assert.equal(await p.title(), 'made up');
  },
  'setRequestInterception: abort': async ({ page, html }) => {
    const p = await page();
    const failed = [];
    p.on('requestfailed', (r) => failed.push(r.failure().errorText));
    await intercept(p, (r) => (r.resourceType() === 'stylesheet' ? r.abort() : r.continue()));
    await p.goto(html('<link rel=stylesheet href=/style.css>'));
    assert.deepEqual(failed, ['net::ERR_FAILED']);
  },
  'setRequestInterception: continue with changes': async ({ visit }) => {
    const p = await visit('');
    await intercept(p, (r) => r.continue({ method: 'POST', postData: 'changed', headers: { ...r.headers(), 'x-added': 'yes' } }));
    const { method, body, headers } = await echoed(p);
    assert.deepEqual([method, body, headers['x-added']], ['POST', 'changed', 'yes']);
    p.removeAllListeners('request');
    await p.setRequestInterception(false);
    assert.equal((await echoed(p)).method, 'GET');
  },
  "page.on('request'), page.on('response'), bodies": async ({ reuse, site }) => {
    const p = await reuse('');
    const [request, response] = await Promise.all([p.waitForRequest(`${site}/echo`), p.waitForResponse(`${site}/echo`), echoed(p, { method: 'POST', body: 'sent' })]);
    assert.deepEqual([request.method(), request.postData(), response.status(), (await response.json()).body, response.remoteAddress().ip], ['POST', 'sent', 200, 'sent', '127.0.0.1']);
    assert.equal(response.headers()['content-type'], 'application/json');
  },
  'WebSocket events by CDP': async ({ visit, socket }) => {
    const p = await visit('');
    const session = await p.createCDPSession();
    await session.send('Network.enable');
    const received = new Promise((resolve) => { session.once('Network.webSocketFrameReceived', resolve); });
    await p.evaluate((url) => { const w = new WebSocket(url); w.onopen = () => w.send('hello'); }, socket);
    assert.equal((await received).response.payloadData, 'hello');
  },
  'page.setExtraHTTPHeaders, setUserAgent': async ({ visit }) => {
    const p = await visit('');
    await p.setExtraHTTPHeaders({ 'x-extra': 'yes' });
    await p.setUserAgent({ userAgent: 'mine' });
    const { headers } = await echoed(p);
    assert.deepEqual([headers['x-extra'], headers['user-agent']], ['yes', 'mine']);
  },
  'page.authenticate': async ({ page, site }) => {
    const p = await page();
    await p.authenticate({ username: 'ada', password: 'secret' });
    assert.equal((await p.goto(`${site}/private`)).status(), 200);
  },
  'page.setOfflineMode, emulateNetworkConditions': async ({ visit, site }) => {
    const p = await visit('');
    await p.setOfflineMode(true);
    await assert.rejects(p.goto(`${site}/next.html`), /ERR_INTERNET_DISCONNECTED/);
    await p.setOfflineMode(false);
    await p.emulateNetworkConditions({ download: 1e6, upload: 1e6, latency: 5 });
    assert.equal((await p.reload()).status(), 200);
  },
  'page.setCacheEnabled': async ({ page, site }) => {
    const p = await page();
    const count = async () => p.evaluate(async () => (await fetch('/counted')).text());
    await p.goto(`${site}/next.html`);
    const [first, second] = [await count(), await count()];
    assert.equal(second, first);
    await p.setCacheEnabled(false);
    assert.notEqual(await count(), first);
  },
  'createBrowserContext({proxyServer})': async ({ open, proxy }) => {
    const p = await open({ proxyServer: proxy });
    await p.goto('http://behind.test/');
    assert.equal(await p.title(), 'through the proxy');
  },
  'connect({acceptInsecureCerts})': async ({ connect, tls }) => {
    const browser = await connect({ acceptInsecureCerts: true });
    const p = await browser.newPage();
    const response = await p.goto(tls);
    assert.equal(response.status(), 200);
    assert.match(response.securityDetails().protocol(), /TLS/);
  },
};
