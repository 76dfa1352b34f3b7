// Features of Playwright that go from page to page.
import assert from 'node:assert/strict';

export default {
  'page.goto': async ({ page, html, site }) => {
    const p = await page();
    const response = await p.goto(html('<title>here</title>'), { referer: `${site}/from` });
    assert.deepEqual([response.status(), await p.title(), await p.evaluate(() => document.referrer)], [200, 'here', `${site}/from`]);
  },
  'page.goto, HTTP error': async ({ page, site }) => {
    const response = await (await page()).goto(`${site}/missing`);
    assert.deepEqual([response.status(), response.ok()], [404, false]);
  },
  'page.goto, connection refused': async ({ page }) => {
    await assert.rejects((await page()).goto('http://127.0.0.1:1/'), /ERR_UNSAFE_PORT|ERR_CONNECTION_REFUSED/);
  },
  'page.goto, data: address': async ({ page }) => {
    const p = await page();
    await p.goto('data:text/html,<title>data</title>');
    assert.equal(await p.title(), 'data');
  },
  'page.reload': async ({ reuse }) => {
    const p = await reuse('<title>here</title>');
    await p.evaluate(() => { document.title = 'changed'; });
    assert.equal((await p.reload()).status(), 200);
    assert.equal(await p.title(), 'here');
  },
  'page.goBack, page.goForward': async ({ visit, site, html }) => {
    const p = await visit('<title>first</title>');
    await p.goto(`${site}/next.html`);
    await p.goto(html('<title>third</title>'));
    assert.equal((await p.goBack()).url(), `${site}/next.html`);
    await p.goBack();
    assert.equal(await p.title(), 'first');
    await p.goForward();
    assert.equal(await p.title(), 'next');
  },
  'page.waitForURL after a click': async ({ reuse }) => {
    const p = await reuse('<a href=/next.html>go</a>');
    await p.click('a');
    await p.waitForURL('**/next.html');
    assert.equal(await p.title(), 'next');
  },
  'page.waitForURL after history.pushState': async ({ reuse }) => {
    const p = await reuse('<button onclick="history.pushState({}, \'\', \'/pushed\')">go</button>');
    await p.click('button');
    await p.waitForURL('**/pushed');
    await p.goBack();
    assert.match(p.url(), /\/html/);
  },
  "page.waitForLoadState('networkidle')": async ({ page, html }) => {
    const p = await page();
    await p.goto(html('<script>fetch("/data.json").then((r) => r.json()).then((d) => { document.title = d.from; })</script>'), { waitUntil: 'commit' });
    await p.waitForLoadState('networkidle');
    assert.equal(await p.title(), 'the site');
  },
  'request.redirectedFrom': async ({ page, site }) => {
    const response = await (await page()).goto(`${site}/redirect`);
    assert.equal(response.request().redirectedFrom().url(), `${site}/redirect`);
    assert.equal(response.url(), `${site}/next.html`);
  },
  'page.goto, user and password in the address': async ({ page, site }) => {
    const response = await (await page()).goto(`${site.replace('//', '//ada:secret@')}/private`);
    assert.equal(response.status(), 200);
  },
  'page.goto, 401': async ({ page, other }) => {
    assert.equal((await (await page()).goto(`${other}/asks`)).status(), 401);
  },
  'page.goto, timeout': async ({ page, site }) => {
    const p = await page();
    await assert.rejects(p.goto(`${site}/silent`, { timeout: 100 }), /Timeout 100ms exceeded/);
    await p.goto(`${site}/next.html`);
    assert.equal(await p.title(), 'next');
  },
  'page.goto of a download': async ({ page, site }) => {
    const p = await page();
    const [download, error] = await Promise.all([p.waitForEvent('download'), p.goto(`${site}/download`).catch((err) => err)]);
    assert.match(error.message, /Download is starting/);
    assert.equal(download.suggestedFilename(), 'report.txt');
  },
  'page.goto of a PDF': async ({ page, site }) => {
    assert.equal((await (await page()).goto(`${site}/paper.pdf`)).status(), 200);
  },
  'page.setContent, page.content': async ({ page }) => {
    const p = await page();
    await p.setContent('<p id=x>set</p>');
    assert.match(await p.content(), /<p id="x">set<\/p>/);
  },
};
