// Features of Puppeteer with frames, shadow DOM and workers.
import assert from 'node:assert/strict';

export default {
  'frames of the same and of another site': async ({ visit, other }) => {
    const p = await visit(`<iframe src=/frame.html></iframe><iframe src="${other}/frame.html"></iframe>`);
    for (const element of await p.$$('iframe')) {
      const frame = await element.contentFrame();
      await (await frame.waitForSelector('button')).click();
      await frame.type('input', 'typed');
      assert.deepEqual([await frame.title(), await frame.$eval('input', (e) => e.value)], ['clicked', 'typed']);
    }
    assert.equal(p.frames().length, 3);
    assert.ok(await p.waitForFrame((f) => f.url() === `${other}/frame.html`));
  },
  'selectors pierce shadow DOM (>>>)': async ({ reuse }) => {
    const p = await reuse(`<div id=host></div><script>
      host.attachShadow({mode: 'open'}).innerHTML = '<button onclick="document.title = 1">inside</button>'</script>`);
    await (await p.$('#host >>> button')).click();
    assert.equal(await p.title(), '1');
  },
  "page.on('workercreated'), worker.evaluate": async ({ visit }) => {
    const p = await visit('');
    const [worker] = await Promise.all([new Promise((resolve) => { p.once('workercreated', resolve); }),
      p.evaluate(() => { window.w = new Worker('/worker.js'); })]);
    while (await worker.evaluate(() => self.answer) !== 42); // its script may not have run yet
    const gone = new Promise((resolve) => { p.once('workerdestroyed', resolve); });
    await p.evaluate(() => window.w.terminate());
    await gone;
  },
  'service workers: target.worker': async ({ browser, open, other }) => {
    const p = await open();
    await p.goto(`${other}/next.html`);
    const [target] = await Promise.all([browser.waitForTarget((t) => t.type() === 'service_worker' && t.browserContext() === p.browserContext()),
      p.evaluate(async () => { await navigator.serviceWorker.register('/service.js'); await navigator.serviceWorker.ready; })]);
    assert.equal(await (await target.worker()).evaluate(() => self.answer), 42);
    await p.setBypassServiceWorker(true);
    assert.equal(p.isServiceWorkerBypassed(), true);
  },
};
