// Features of Puppeteer that run scripts in pages and listen to pages.
import assert from 'node:assert/strict';

export default {
  'page.evaluate, evaluateHandle': async ({ reuse }) => {
    const p = await reuse('<p>x</p>');
    assert.deepEqual(await p.evaluate((v) => v, { a: [1, 'ü', null] }), { a: [1, 'ü', null] });
    const handle = await p.evaluateHandle(() => ({ body: document.body }));
    assert.equal(await p.evaluate((h) => h.body.innerText, handle), 'x');
    assert.ok((await handle.getProperties()).get('body').asElement());
    await assert.rejects(p.evaluate(() => { throw new Error('from the page'); }), /from the page/);
  },
  'page.evaluateOnNewDocument': async ({ page, html, site }) => {
    const p = await page();
    const { identifier } = await p.evaluateOnNewDocument((n) => { window.first = n; }, 1);
    await p.goto(html('<title></title><script>document.title = window.first</script>'));
    assert.equal(await p.title(), '1');
    await p.removeScriptToEvaluateOnNewDocument(identifier);
    await p.goto(`${site}/next.html`);
    assert.equal(await p.evaluate(() => window.first), undefined);
  },
  'page.exposeFunction': async ({ page, site }) => {
    const p = await page();
    await p.exposeFunction('double', (n) => n * 2);
    await p.goto(`${site}/next.html`);
    assert.equal(await p.evaluate(() => window.double(4)), 8);
    await p.removeExposedFunction('double');
  },
  'page.addScriptTag, addStyleTag': async ({ reuse, site }) => {
    const p = await reuse('<p class=used>x</p>');
    await p.addScriptTag({ url: `${site}/script.js` });
    await p.addStyleTag({ content: '.used { color: rgb(1, 2, 3) }' });
    assert.deepEqual(await p.evaluate(() => [window.used(), getComputedStyle(document.querySelector('p')).color]), [1, 'rgb(1, 2, 3)']);
  },
  "page.on('console'), page.on('pageerror')": async ({ visit }) => {
    const p = await visit('');
    const [message, error] = await Promise.all([new Promise((resolve) => { p.once('console', resolve); }), new Promise((resolve) => { p.once('pageerror', resolve); }),
      p.evaluate(() => { console.warn('a', { b: 1 }); setTimeout(() => { throw new TypeError('broken'); }); })]);
    assert.deepEqual([message.type(), await message.args()[1].jsonValue()], ['warn', { b: 1 }]);
    assert.match(error.message, /broken/);
  },
  'page.metrics': async ({ reuse }) => {
    assert.ok((await (await reuse('')).metrics()).JSHeapUsedSize > 0);
  },
  'page.createCDPSession': async ({ reuse }) => {
    const session = await (await reuse('<title>here</title>')).createCDPSession();
    const { result } = await session.send('Runtime.evaluate', { expression: 'document.title' });
    assert.equal(result.value, 'here');
    await session.detach();
  },
  'page.queryObjects, captureHeapSnapshot': async ({ reuse, dir }) => {
    const p = await reuse('<script>class Mine {}; window.one = new Mine()</script>');
    const found = await p.queryObjects(await p.evaluateHandle('Mine.prototype'));
    assert.equal(await p.evaluate((all) => all.length, found), 1);
    await p.captureHeapSnapshot({ path: `${dir}/heap.heapsnapshot` });
  },
  "page.on('error') (crash)": async ({ visit }) => {
    const p = await visit('');
    const crashed = new Promise((resolve) => { p.once('error', resolve); });
    const session = await p.createCDPSession();
    session.send('Page.crash').catch(() => {}); // it has no answer
    assert.match((await crashed).message, /crashed/);
  },
};
