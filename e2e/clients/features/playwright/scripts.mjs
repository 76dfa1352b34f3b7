// Features of Playwright that run scripts in pages and listen to pages.
import assert from 'node:assert/strict';
import { once } from 'node:events';

export default {
  'page.evaluate, values of every kind': async ({ reuse }) => {
    const p = await reuse('');
    const values = { text: 'ü', big: 10n, none: null, date: new Date(0), list: [1, NaN], map: { a: undefined }, at: new URL('http://a.test/') };
    assert.deepEqual(await p.evaluate((v) => v, values), values);
    await assert.rejects(p.evaluate(() => { throw new Error('from the page'); }), /from the page/);
  },
  'page.evaluate, two megabytes': async ({ reuse }) => {
    const p = await reuse('');
    const large = 'x'.repeat(2 << 20);
    assert.equal((await p.evaluate((v) => v, large)).length, large.length);
  },
  'page.evaluateHandle, jsHandle.getProperties': async ({ reuse }) => {
    const p = await reuse('<p>x</p>');
    const handle = await p.evaluateHandle(() => ({ list: [1, 2], body: document.body }));
    assert.deepEqual(await (await handle.getProperty('list')).jsonValue(), [1, 2]);
    assert.equal(await p.evaluate((h) => h.body.innerText, handle), 'x');
    assert.equal((await handle.getProperties()).get('body').asElement() !== null, true);
    await handle.dispose();
  },
  'page.addInitScript, context.addInitScript': async ({ page, open, site, other, html }) => {
    const p = await page();
    await p.addInitScript((n) => { window.first = n; }, 1);
    await p.goto(html(`<title></title><script>document.title = window.first</script><iframe src="${other}/frame.html"></iframe>`));
    assert.equal(await p.title(), '1');
    assert.equal(await p.frames()[1].evaluate(() => window.first), 1);
    await p.goto(`${site}/next.html`);
    assert.equal(await p.evaluate(() => window.first), 1);
    const q = await open();
    await q.context().addInitScript('window.all = 2');
    const other2 = await q.context().newPage();
    await other2.goto(`${site}/next.html`);
    assert.equal(await other2.evaluate(() => window.all), 2);
  },
  'page.exposeFunction, page.exposeBinding': async ({ page, site }) => {
    const p = await page();
    await p.exposeFunction('double', (n) => n * 2);
    await p.exposeBinding('where', ({ frame }) => frame.url());
    await p.goto(`${site}/next.html`);
    assert.deepEqual(await p.evaluate(async () => [await window.double(4), await window.where()]), [8, `${site}/next.html`]);
  },
  'page.addScriptTag, page.addStyleTag': async ({ reuse, site }) => {
    const p = await reuse('<p class=used>x</p>');
    await p.addScriptTag({ url: `${site}/script.js` });
    await p.addScriptTag({ content: 'window.inline = 3' });
    await p.addStyleTag({ url: `${site}/style.css` });
    assert.deepEqual(await p.evaluate(() => [window.used(), window.inline, getComputedStyle(document.querySelector('p')).color]), [1, 3, 'rgb(1, 2, 3)']);
  },
  "page.on('console')": async ({ visit }) => {
    const p = await visit('');
    const logged = p.waitForEvent('console');
    await p.evaluate(() => console.warn('a', { b: 1 }));
    const message = await logged;
    assert.deepEqual([message.type(), message.text(), await message.args()[1].jsonValue()], ['warning', 'a {b: 1}', { b: 1 }]);
    assert.equal((await p.consoleMessages()).length, 1);
  },
  "page.on('pageerror'), context.on('weberror')": async ({ context, visit }) => {
    const p = await visit('');
    const [error, web] = await Promise.all([p.waitForEvent('pageerror'), once(context, 'weberror'),
      p.evaluate(() => { setTimeout(() => { throw new TypeError('broken'); }); })]);
    assert.deepEqual([error.name, error.message, web[0].error().message], ['TypeError', 'broken', 'broken']);
  },
  'page.clock': async ({ page, site }) => {
    const p = await page();
    await p.clock.install({ time: new Date('2030-01-01T00:00:00Z') });
    await p.goto(`${site}/next.html`);
    await p.evaluate(() => { setTimeout(() => { document.title = 'an hour later'; }, 3_600_000); });
    await p.clock.fastForward('01:00:01');
    assert.equal(await p.title(), 'an hour later');
    assert.equal(await p.evaluate(() => new Date().getFullYear()), 2030);
  },
  'context.newCDPSession, browser.newBrowserCDPSession': async ({ browser, context, visit }) => {
    const p = await visit('<title>here</title>');
    const session = await context.newCDPSession(p);
    const { result } = await session.send('Runtime.evaluate', { expression: 'document.title' });
    assert.equal(result.value, 'here');
    const resumed = new Promise((resolve) => { session.on('Page.frameNavigated', resolve); });
    await session.send('Page.enable');
    await p.reload();
    await resumed;
    await session.detach();
    const whole = await browser.newBrowserCDPSession();
    assert.match((await whole.send('Browser.getVersion')).product, /Chrome/);
    await whole.detach();
  },
  'Page.captureSnapshot, DOMSnapshot by CDP': async ({ context, reuse }) => {
    const session = await context.newCDPSession(await reuse('<p>text</p>'));
    assert.match((await session.send('Page.captureSnapshot')).data, /text/);
    assert.ok((await session.send('DOMSnapshot.captureSnapshot', { computedStyles: [] })).documents.length);
  },
  'Target.createTarget, Storage and Browser by CDP': async ({ browser, html }) => {
    const session = await browser.newBrowserCDPSession();
    const { targetId } = await session.send('Target.createTarget', { url: html('<title>made</title>'), newWindow: true });
    const { windowId } = await session.send('Browser.getWindowForTarget', { targetId });
    assert.ok((await session.send('Browser.getWindowBounds', { windowId })).bounds.width > 0);
    assert.ok(Array.isArray((await session.send('Storage.getCookies')).cookies));
    await session.send('Target.closeTarget', { targetId });
  },
  'metrics by CDP': async ({ context, reuse }) => {
    const session = await context.newCDPSession(await reuse(''));
    await session.send('Performance.enable');
    const { metrics } = await session.send('Performance.getMetrics');
    assert.ok(metrics.find((m) => m.name === 'JSHeapUsedSize').value > 0);
  },
  'debugger by CDP': async ({ context, reuse }) => {
    const p = await reuse('<script>function stop() { debugger; return 7; }</script>');
    const session = await context.newCDPSession(p);
    await session.send('Debugger.enable');
    const paused = new Promise((resolve) => { session.once('Debugger.paused', resolve); });
    const result = p.evaluate(() => window.stop());
    assert.equal((await paused).callFrames[0].functionName, 'stop');
    await session.send('Debugger.resume');
    assert.equal(await result, 7);
  },
  'page.requestGC': async ({ reuse }) => {
    const p = await reuse('<script>window.weak = new WeakRef({big: new Array(1000)})</script>');
    await p.requestGC();
    assert.equal(await p.evaluate(() => window.weak.deref()), undefined);
  },
};
