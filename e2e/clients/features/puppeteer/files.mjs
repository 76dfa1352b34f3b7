// Features of Puppeteer with files: downloads and uploads.
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** content is the names and texts of the files of an input. */
const content = (page) => page.evaluate(async () =>
  Promise.all([...document.querySelector('input').files].map(async (f) => `${f.name}: ${await f.text()}`)));

const upload = async (dir, name, text) => {
  const path = join(dir, name);
  await writeFile(path, text);
  return path;
};

export default {
  'elementHandle.uploadFile': async ({ reuse, dir }) => {
    const p = await reuse('<input type=file multiple>');
    await (await p.$('input')).uploadFile(await upload(dir, 'p-a.txt', 'first'), await upload(dir, 'p-b.txt', 'second'));
    assert.deepEqual(await content(p), ['p-a.txt: first', 'p-b.txt: second']);
  },
  'page.waitForFileChooser': async ({ visit, dir }) => {
    const p = await visit('<input type=file>');
    const path = await upload(dir, 'p-chosen.txt', 'chosen');
    const [chooser] = await Promise.all([p.waitForFileChooser(), p.click('input')]);
    await chooser.accept([path]);
    assert.deepEqual(await content(p), ['p-chosen.txt: chosen']);
  },
  'connect({downloadBehavior}), the file on disk': async ({ connect, html, dir }) => {
    const downloadPath = join(dir, 'downloads');
    await mkdir(downloadPath, { recursive: true });
    const browser = await connect({ downloadBehavior: { policy: 'allow', downloadPath } });
    const p = await browser.newPage();
    await p.goto(html('<a href=/download>get</a>'));
    const session = await browser.target().createCDPSession();
    await session.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath, eventsEnabled: true });
    const names = new Map();
    const done = new Promise((resolve) => {
      session.on('Browser.downloadWillBegin', (e) => names.set(e.guid, e.suggestedFilename));
      session.on('Browser.downloadProgress', (e) => { if (e.state === 'completed') resolve(names.get(e.guid)); });
    });
    await p.click('a');
    assert.equal(await done, 'report.txt');
    assert.equal(await readFile(join(downloadPath, 'report.txt'), 'utf8'), 'a report');
  },
};
