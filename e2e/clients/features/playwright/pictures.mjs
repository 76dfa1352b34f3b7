// Features of Playwright that record: pictures, PDF, traces, coverage, video.
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';

/** size returns the size of a PNG. */
const size = (png) => [png.readUInt32BE(16), png.readUInt32BE(20)];

export default {
  'page.screenshot': async ({ visit }) => {
    const p = await visit('<style>body { margin: 0 }</style><div style="height: 2000px">tall</div>');
    await p.setViewportSize({ width: 500, height: 400 });
    assert.deepEqual(size(await p.screenshot()), [500, 400]);
    assert.equal(size(await p.screenshot({ fullPage: true }))[1], 2000); // a scroll bar may take some of the width
    assert.deepEqual(size(await p.screenshot({ clip: { x: 10, y: 10, width: 30, height: 20 } })), [30, 20]);
    assert.equal((await p.screenshot({ type: 'jpeg', quality: 50 })).readUInt16BE(0), 0xffd8);
  },
  'locator.screenshot, mask, omitBackground': async ({ reuse }) => {
    const p = await reuse('<p style="width: 120px; height: 40px">x</p>');
    assert.deepEqual(size(await p.locator('p').screenshot()), [120, 40]);
    assert.ok((await p.screenshot({ omitBackground: true, mask: [p.locator('p')], animations: 'disabled', caret: 'hide' })).length > 0);
  },
  'screenshot of a page behind another': async ({ visit }) => {
    const behind = await visit('<p>behind</p>');
    await visit('<p>front</p>');
    assert.ok((await behind.screenshot()).length > 0);
  },
  'page.screenshot, a page of 12000 pixels': async ({ visit }) => {
    const p = await visit('<style>body { margin: 0 }</style><div style="height: 12000px; background: linear-gradient(red, blue)">tall</div>');
    assert.equal(size(await p.screenshot({ fullPage: true }))[1], 12000);
  },
  'page.pdf': async ({ reuse }) => {
    const p = await reuse('<h1>Title</h1>');
    assert.equal((await p.pdf({ format: 'A4', printBackground: true })).subarray(0, 5).toString(), '%PDF-');
  },
  'context.tracing': async ({ context, visit, dir }) => {
    await context.tracing.start({ screenshots: true, snapshots: true });
    const p = await visit('<button>x</button>');
    await p.click('button');
    const path = join(dir, 'trace.zip');
    await context.tracing.stop({ path });
    assert.ok((await stat(path)).size > 1000);
  },
  'browser.startTracing': async ({ browser, visit }) => {
    const p = await visit('');
    await browser.startTracing(p, { screenshots: true });
    await p.reload();
    const { traceEvents } = JSON.parse(await browser.stopTracing());
    assert.ok(traceEvents.length > 10);
  },
  'page.coverage': async ({ page, html }) => {
    const p = await page();
    await Promise.all([p.coverage.startJSCoverage(), p.coverage.startCSSCoverage()]);
    await p.goto(html('<link rel=stylesheet href=/style.css><script src=/script.js></script><p class=used>x</p>'));
    const [js, css] = await Promise.all([p.coverage.stopJSCoverage(), p.coverage.stopCSSCoverage()]);
    assert.deepEqual(js.find((e) => e.url.endsWith('/script.js')).functions.map((f) => `${f.functionName} ${f.ranges[0].count}`), [' 1', 'used 1', 'unused 0']);
    assert.equal(css[0].ranges.length, 1);
  },
  'page.screencast': async ({ visit }) => {
    const p = await visit('<p>x</p>');
    const frame = new Promise((resolve) => { p.screencast.start({ onFrame: resolve }); });
    await p.evaluate(() => { setInterval(() => { document.body.append('x'); }, 20); });
    assert.equal((await frame).data.readUInt16BE(0), 0xffd8);
    await p.screencast.stop();
  },
};
