// Features of Playwright with several pages, dialogs and closes.
import assert from 'node:assert/strict';
import { measure } from '../activity.mjs';

export default {
  'context.pages, several pages': async ({ context, page, html }) => {
    const all = await Promise.all([1, 2, 3].map(async (n) => {
      const p = await page();
      await p.goto(html(`<title>${n}</title>`));
      return p;
    }));
    assert.deepEqual(await Promise.all(all.map((p) => p.title())), ['1', '2', '3']);
    assert.ok(all.every((p) => context.pages().includes(p)));
  },
  'pages behind others run at full speed': async ({ visit }) => {
    const behind = await visit('<title>behind</title>');
    const front = await visit('<title>front</title>');
    for (const p of [behind, front]) {
      const { frames, timers, hidden } = await measure(p);
      assert.ok(timers > 10, `${timers} timers in half a second`);
      assert.ok(frames > 5, `${frames} frames in half a second`);
      assert.equal(hidden, false);
    }
  },
  'page.bringToFront': async ({ visit }) => {
    const first = await visit('<title>first</title>');
    await visit('<title>second</title>');
    await first.bringToFront();
    await first.waitForFunction(() => document.visibilityState === 'visible', null, { polling: 50 });
  },
  "page.waitForEvent('popup')": async ({ visit }) => {
    const p = await visit('<button onclick="window.open(\'/next.html\').mine = 1">open</button>');
    const [popup] = await Promise.all([p.waitForEvent('popup'), p.click('button')]);
    await popup.waitForLoadState();
    assert.equal(await popup.title(), 'next');
    assert.equal(await popup.opener(), p);
  },
  "context.waitForEvent('page'), link with target=_blank": async ({ context, visit }) => {
    const p = await visit('<a href=/next.html target=_blank rel=noopener>open</a>');
    const [opened] = await Promise.all([context.waitForEvent('page'), p.click('a')]);
    await opened.waitForLoadState();
    assert.equal(await opened.title(), 'next');
  },
  "window.open with a size, page.on('close')": async ({ visit }) => {
    const p = await visit('<script>var w</script><button onclick="w = open(\'/next.html\', \'\', \'width=400,height=300\')">open</button>');
    const [popup] = await Promise.all([p.waitForEvent('popup'), p.click('button')]);
    await popup.waitForLoadState();
    const width = await popup.evaluate(() => innerWidth);
    assert.equal(width, 400, `the pop-up is ${width} pixels wide`);
    const closed = popup.waitForEvent('close');
    await p.evaluate(() => { globalThis.w.close(); });
    await closed;
    assert.ok(popup.isClosed());
  },
  "page.on('dialog')": async ({ visit }) => {
    const p = await visit('');
    const seen = [];
    p.on('dialog', async (dialog) => {
      seen.push(`${dialog.type()} ${dialog.message()} ${dialog.defaultValue()}`);
      await (dialog.type() === 'prompt' ? dialog.accept('Ada') : dialog.dismiss());
    });
    assert.deepEqual(await p.evaluate(() => [alert('a'), confirm('b'), prompt('c', 'd')]), [undefined, false, 'Ada']);
    assert.deepEqual(seen, ['alert a ', 'confirm b ', 'prompt c d']);
  },
  'dialog of beforeunload at page.goto': async ({ visit, site }) => {
    const p = await visit('<button>x</button><script>onbeforeunload = (e) => { e.preventDefault(); return "stay"; }</script>');
    await p.click('button'); // without an input there is no question
    p.once('dialog', (dialog) => dialog.accept());
    assert.equal((await p.goto(`${site}/next.html`)).status(), 200);
  },
  'window.print': async ({ visit }) => {
    const p = await visit('<title>here</title>');
    await p.evaluate(() => print());
    assert.equal(await p.title(), 'here');
  },
  'element.requestFullscreen': async ({ visit }) => {
    const p = await visit('<button onclick="document.body.requestFullscreen().then(() => { document.title = \'full\' }, (e) => { document.title = e.message })">x</button>');
    await p.click('button');
    await p.waitForFunction(() => document.title, null, { polling: 50 });
    assert.equal(await p.title(), 'full');
  },
  'page.close with runBeforeUnload': async ({ visit }) => {
    const p = await visit('<button>x</button><script>onbeforeunload = (e) => { e.preventDefault(); return "stay"; }</script>');
    await p.click('button'); // without an input there is no question
    const asked = p.waitForEvent('dialog');
    await p.close({ runBeforeUnload: true });
    const dialog = await asked;
    assert.equal(dialog.type(), 'beforeunload');
    const closed = p.waitForEvent('close');
    await dialog.accept();
    await closed;
  },
  "page.on('crash')": async ({ context, visit }) => {
    const p = await visit('');
    const crashed = p.waitForEvent('crash');
    const session = await context.newCDPSession(p);
    session.send('Page.crash').catch(() => {}); // it has no answer
    await crashed;
  },
  'browser.newContext': async ({ context, open, html, other }) => {
    const p = await open();
    await p.goto(html('<title>alone</title>', other));
    await p.evaluate(() => { document.cookie = 'a=1'; localStorage.a = '1'; });
    assert.deepEqual(await context.cookies(other), []);
    assert.equal((await p.context().cookies(other)).length, 1);
    const closed = p.waitForEvent('close');
    await p.context().close();
    await closed;
  },
  'browser.version, browser.isConnected': async ({ browser }) => {
    assert.match(browser.version(), /^\d+\./);
    assert.ok(browser.isConnected());
  },
};
