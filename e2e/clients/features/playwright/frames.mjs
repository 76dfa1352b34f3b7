// Features of Playwright with frames and workers.
import assert from 'node:assert/strict';

export default {
  'frame of the same site': async ({ reuse }) => {
    const p = await reuse('<iframe src=/frame.html name=inner></iframe>');
    await p.frameLocator('iframe').getByRole('button').click();
    assert.equal(await p.frame('inner').title(), 'clicked');
  },
  'frame of another site': async ({ visit, other }) => {
    const p = await visit(`<iframe src="${other}/frame.html"></iframe>`);
    const frame = p.locator('iframe').contentFrame();
    await frame.locator('input').fill('typed');
    await frame.getByRole('button').click();
    const [, inner] = p.frames();
    assert.deepEqual([inner.url(), await inner.title(), await inner.inputValue('input')], [`${other}/frame.html`, 'clicked', 'typed']);
    assert.equal(inner.parentFrame(), p.mainFrame());
  },
  "page.on('frameattached'), page.on('framenavigated'), page.on('framedetached')": async ({ visit, other }) => {
    const p = await visit('');
    const seen = [];
    for (const kind of ['frameattached', 'framenavigated', 'framedetached']) p.on(kind, () => seen.push(kind));
    await p.evaluate((src) => new Promise((resolve) => {
      const frame = document.createElement('iframe');
      Object.assign(frame, { src, onload: resolve });
      document.body.append(frame);
    }), `${other}/frame.html`);
    const gone = p.waitForEvent('framedetached');
    await p.evaluate(() => document.querySelector('iframe').remove());
    await gone;
    assert.deepEqual([...new Set(seen)], ['frameattached', 'framenavigated', 'framedetached']);
  },
  'elementHandle.contentFrame, frameElement': async ({ reuse }) => {
    const p = await reuse('<iframe src=/frame.html></iframe>');
    const frame = await (await p.$('iframe')).contentFrame();
    assert.equal(await (await frame.frameElement()).getAttribute('src'), '/frame.html');
    assert.equal(await (await frame.waitForSelector('button')).innerText(), 'In the frame');
  },
  "page.on('worker'), worker.evaluate": async ({ visit }) => {
    const p = await visit('');
    const [worker] = await Promise.all([p.waitForEvent('worker'), p.evaluate(() => { window.w = new Worker('/worker.js'); })]);
    while (await worker.evaluate(() => self.answer) !== 42); // its script may not have run yet
    const closed = worker.waitForEvent('close');
    await p.evaluate(() => window.w.terminate());
    await closed;
  },
  "context.waitForEvent('serviceworker')": async ({ open, other }) => {
    const p = await open();
    const [worker] = await Promise.all([p.context().waitForEvent('serviceworker'), (async () => {
      await p.goto(`${other}/next.html`);
      await p.evaluate(async () => { await navigator.serviceWorker.register('/service.js'); await navigator.serviceWorker.ready; });
    })()]);
    assert.equal(await worker.evaluate(() => self.answer), 42);
    assert.ok(p.context().serviceWorkers().includes(worker));
    await p.waitForFunction(() => navigator.serviceWorker.controller);
    assert.equal(await p.evaluate(async () => (await fetch('/from-worker')).text()), 'from the worker');
  },
  "newContext({serviceWorkers: 'block'})": async ({ open, other }) => {
    const p = await open({ serviceWorkers: 'block' });
    await p.goto(`${other}/next.html`);
    await p.evaluate(() => navigator.serviceWorker.register('/service.js'));
    assert.equal(await p.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0);
  },
};
