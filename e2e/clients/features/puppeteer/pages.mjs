// Features of Puppeteer with several pages, contexts and dialogs.
import assert from 'node:assert/strict';
import { measure } from '../activity.mjs';

export default {
  'browser.pages, several pages': async ({ browser, page, html }) => {
    const all = await Promise.all([1, 2, 3].map(async (n) => {
      const p = await page();
      await p.goto(html(`<title>${n}</title>`));
      return p;
    }));
    assert.deepEqual(await Promise.all(all.map((p) => p.title())), ['1', '2', '3']);
    const listed = await browser.pages();
    assert.ok(all.every((p) => listed.includes(p)));
  },
  'pages behind others run at full speed': async ({ visit }) => {
    const behind = await visit('<title>behind</title>');
    await visit('<title>front</title>');
    const { frames, timers, hidden } = await measure(behind);
    assert.ok(timers > 10, `${timers} timers in half a second`);
    assert.ok(frames > 5, `${frames} frames in half a second`);
    assert.equal(hidden, false);
  },
  'page.bringToFront': async ({ visit }) => {
    const first = await visit('');
    await visit('');
    await first.bringToFront();
    await first.waitForFunction(() => document.visibilityState === 'visible', { polling: 50 });
  },
  "page.on('popup'), browser.waitForTarget": async ({ browser, visit }) => {
    const p = await visit('<button onclick="window.open(\'/next.html\')">open</button><a href=/next.html?blank target=_blank rel=noopener>x</a>');
    const [popup] = await Promise.all([new Promise((resolve) => { p.once('popup', resolve); }), p.click('button')]);
    await popup.waitForFunction(() => document.title === 'next', { polling: 50 });
    await p.bringToFront();
    const [target] = await Promise.all([browser.waitForTarget((t) => t.url().endsWith('?blank')), p.click('a')]);
    assert.equal(target.type(), 'page');
    const closed = new Promise((resolve) => { popup.once('close', resolve); });
    await popup.close();
    await closed;
  },
  "page.on('dialog')": async ({ visit }) => {
    const p = await visit('');
    const seen = [];
    p.on('dialog', async (dialog) => {
      seen.push(`${dialog.type()} ${dialog.message()} ${dialog.defaultValue()}`);
      await (dialog.type() === 'prompt' ? dialog.accept('Ada') : dialog.dismiss());
    });
    assert.deepEqual(await p.evaluate(() => [confirm('b'), prompt('c', 'd')]), [false, 'Ada']);
    assert.deepEqual(seen, ['confirm b ', 'prompt c d']);
  },
  'browser.createBrowserContext': async ({ browser, open, html }) => {
    const p = await open();
    await p.goto(html('<title>alone</title>'));
    await p.evaluate(() => { document.cookie = 'a=1'; });
    assert.deepEqual((await browser.cookies()).filter((c) => c.name === 'a'), []);
    assert.equal((await p.browserContext().cookies()).length, 1);
    await p.browserContext().close();
    assert.ok(p.isClosed());
  },
  'browser.cookies, setCookie, deleteCookie': async ({ browser, reuse }) => {
    const p = await reuse('');
    await browser.setCookie({ name: 'p', value: '1', domain: '127.0.0.1', path: '/', expires: Date.now() / 1000 + 3600 });
    assert.equal(await p.evaluate(() => document.cookie), 'p=1');
    const found = (await browser.cookies()).filter((c) => c.name === 'p');
    assert.equal(found.length, 1);
    await browser.deleteCookie(...found);
    assert.equal(await p.evaluate(() => document.cookie), '');
  },
  'browser.getWindowBounds, setWindowBounds, window pages': async ({ browser }) => {
    const p = await browser.newPage({ type: 'window', windowBounds: { left: 10, top: 10, width: 700, height: 500 } });
    const id = await p.windowId();
    assert.equal((await browser.getWindowBounds(id)).width, 700);
    await browser.setWindowBounds(id, { width: 800 });
    assert.equal((await browser.getWindowBounds(id)).width, 800);
  },
  'browser.version, userAgent, disconnect': async ({ browser, connect, visit }) => {
    assert.match(await browser.version(), /Chrome\/\d+/);
    const p = await visit('');
    assert.equal(await browser.userAgent(), await p.evaluate(() => navigator.userAgent));
    const another = await connect();
    await another.disconnect();
    assert.ok(browser.connected && !another.connected);
  },
};
