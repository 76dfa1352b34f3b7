// Features of Puppeteer that record: pictures, PDF, traces, coverage, video.
import assert from 'node:assert/strict';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** size returns the size of a PNG. */
const size = (png) => [Buffer.from(png).readUInt32BE(16), Buffer.from(png).readUInt32BE(20)];

export default {
  'page.screenshot, elementHandle.screenshot': async ({ visit }) => {
    const p = await visit('<style>body { margin: 0 }</style><p style="width: 120px; height: 40px; margin: 0">x</p><div style="height: 2000px">tall</div>');
    await p.setViewport({ width: 500, height: 400 });
    assert.deepEqual(size(await p.screenshot()), [500, 400]);
    assert.equal(size(await p.screenshot({ fullPage: true }))[1], 2040);
    assert.deepEqual(size(await p.screenshot({ clip: { x: 10, y: 10, width: 30, height: 20 } })), [30, 20]);
    assert.deepEqual(size(await (await p.$('p')).screenshot()), [120, 40]);
    assert.equal(Buffer.from(await p.screenshot({ type: 'webp', omitBackground: true })).subarray(8, 12).toString(), 'WEBP');
  },
  'page.pdf, createPDFStream': async ({ reuse }) => {
    const p = await reuse('<h1>Title</h1>');
    assert.equal(Buffer.from(await p.pdf({ format: 'A4' })).subarray(0, 5).toString(), '%PDF-');
  },
  'page.tracing': async ({ reuse }) => {
    const p = await reuse('');
    await p.tracing.start({ screenshots: true });
    await p.reload();
    assert.ok(JSON.parse(Buffer.from(await p.tracing.stop()).toString()).traceEvents.length > 10);
  },
  'page.coverage': async ({ page, html }) => {
    const p = await page();
    await Promise.all([p.coverage.startJSCoverage(), p.coverage.startCSSCoverage()]);
    await p.goto(html('<link rel=stylesheet href=/style.css><script src=/script.js></script><p class=used>x</p>'));
    const [js, css] = await Promise.all([p.coverage.stopJSCoverage(), p.coverage.stopCSSCoverage()]);
    assert.ok(js.find((e) => e.url.endsWith('/script.js')).ranges.length > 0);
    assert.equal(css[0].ranges.length, 1);
  },
  'page.accessibility.snapshot': async ({ reuse }) => {
    const p = await reuse('<h1>Title</h1><button>Send</button>');
    const { children } = await p.accessibility.snapshot();
    assert.deepEqual(children.map((c) => `${c.role} ${c.name}`), ['heading Title', 'button Send']);
  },
  'page.screencast': async ({ visit, dir }) => {
    const ffmpegPath = join(dir, 'ffmpeg'), path = join(dir, 'video.webm');
    await writeFile(ffmpegPath, '#!/bin/sh\nexec cat\n');
    await chmod(ffmpegPath, 0o755);
    const p = await visit('<p>x</p>');
    const recorder = await p.screencast({ path, ffmpegPath });
    await p.evaluate(() => new Promise((resolve) => { let n = 0; const at = setInterval(() => { document.body.append('x'); if (n++ > 10) { clearInterval(at); resolve(); } }, 20); }));
    await recorder.stop();
    assert.ok((await readFile(path)).length > 1000);
  },
};
