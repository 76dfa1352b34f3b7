// Features of Puppeteer that go from page to page and wait.
import assert from 'node:assert/strict';

export default {
  'page.goto': async ({ page, html, site }) => {
    const p = await page();
    const response = await p.goto(html('<title>here</title>'), { referer: `${site}/from`, waitUntil: 'networkidle0' });
    assert.deepEqual([response.status(), await p.title(), await p.evaluate(() => document.referrer)], [200, 'here', `${site}/from`]);
    assert.equal((await p.goto(`${site}/missing`)).status(), 404);
    await assert.rejects(p.goto('http://127.0.0.1:1/'), /ERR_UNSAFE_PORT|ERR_CONNECTION_REFUSED/);
  },
  'page.reload': async ({ reuse }) => {
    const p = await reuse('<title>here</title>');
    await p.evaluate(() => { document.title = 'changed'; });
    assert.equal((await p.reload()).status(), 200);
    assert.equal(await p.title(), 'here');
  },
  'page.goBack, page.goForward': async ({ visit, site }) => {
    const p = await visit('<title>first</title>');
    await p.goto(`${site}/next.html`);
    await p.goBack();
    assert.equal(await p.title(), 'first');
    await p.goForward();
    assert.equal(await p.title(), 'next');
  },
  'page.waitForNavigation after a click': async ({ reuse, site }) => {
    const p = await reuse('<a href=/redirect>go</a>');
    const [response] = await Promise.all([p.waitForNavigation(), p.click('a')]);
    assert.deepEqual([response.url(), response.request().redirectChain().length], [`${site}/next.html`, 1]);
  },
  'page.setContent, page.content': async ({ page }) => {
    const p = await page();
    await p.setContent('<p id=x>set</p>');
    assert.match(await p.content(), /<p id="x">set<\/p>/);
  },
  'page.waitForSelector, waitForFunction': async ({ reuse }) => {
    const p = await reuse('<p>x</p><script>setTimeout(() => { window.ready = 5; document.body.append(document.createElement("i")) }, 50)</script>');
    await p.waitForSelector('i');
    assert.equal(await (await p.waitForFunction((n) => window.ready === n && window.ready, {}, 5)).jsonValue(), 5);
    await p.evaluate(() => { setTimeout(() => document.querySelector('i').remove(), 50); });
    await p.waitForSelector('i', { hidden: true });
  },
  'page.waitForRequest, waitForResponse, waitForNetworkIdle': async ({ reuse }) => {
    const p = await reuse('');
    const [request, response] = await Promise.all([
      p.waitForRequest((r) => r.url().endsWith('/data.json')), p.waitForResponse((r) => r.url().endsWith('/data.json')),
      p.evaluate(() => { fetch('/data.json'); }),
    ]);
    assert.deepEqual([response.request(), await response.json()], [request, { from: 'the site' }]);
    await p.waitForNetworkIdle({ idleTime: 50 });
  },
  'locators, $, $$eval, text and xpath selectors': async ({ reuse }) => {
    const p = await reuse('<ul><li>one<li>two</ul><button aria-label=Send onclick="document.title = 1">x</button>');
    assert.deepEqual(await p.$$eval('li', (all) => all.map((e) => e.textContent)), ['one', 'two']);
    assert.equal(await (await p.$('::-p-xpath(//li[2])')).evaluate((e) => e.textContent), 'two');
    assert.ok(await p.$('::-p-text(one)'));
    await p.locator('::-p-aria(Send)').click();
    assert.equal(await p.title(), '1');
    assert.equal(await p.locator('li:last-child').filter((e) => e.textContent === 'two').map((e) => e.textContent).wait(), 'two');
  },
};
