// Features of Playwright with files: downloads and uploads.
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';

/** content is the names and texts of the files of an input. */
const content = (page) => page.evaluate(async () =>
  Promise.all([...document.querySelector('input').files].map(async (f) => `${f.name}: ${await f.text()}`)));

const upload = async (dir, name, body) => {
  const path = join(dir, name);
  await writeFile(path, body);
  return path;
};

const download = async (p) => {
  const [d] = await Promise.all([p.waitForEvent('download'), p.click('a')]);
  return d;
};

export default {
  'setInputFiles with a path': async ({ reuse, dir }) => {
    const p = await reuse('<input type=file multiple>');
    await p.setInputFiles('input', [await upload(dir, 'a.txt', 'first'), await upload(dir, 'b.txt', 'second')]);
    assert.deepEqual(await content(p), ['a.txt: first', 'b.txt: second']);
  },
  'setInputFiles with a buffer': async ({ reuse }) => {
    const p = await reuse('<input type=file>');
    await p.setInputFiles('input', { name: 'up.txt', mimeType: 'text/plain', buffer: Buffer.from('given') });
    assert.deepEqual(await content(p), ['up.txt: given']);
    await p.setInputFiles('input', []);
    assert.deepEqual(await content(p), []);
  },
  "page.waitForEvent('filechooser')": async ({ visit, dir }) => {
    const p = await visit('<input type=file>');
    const [chooser] = await Promise.all([p.waitForEvent('filechooser'), p.click('input')]);
    assert.equal(chooser.isMultiple(), false);
    await chooser.setFiles(await upload(dir, 'chosen.txt', 'chosen'));
    assert.deepEqual(await content(p), ['chosen.txt: chosen']);
  },
  'setInputFiles with a folder': async ({ visit, dir, timeout }) => {
    const p = await visit('<input type=file webkitdirectory>');
    await mkdir(join(dir, 'folder'), { recursive: true });
    await upload(dir, 'folder/in.txt', 'inside');
    await p.setInputFiles('input', join(dir, 'folder'), { timeout: timeout / 5 });
    assert.deepEqual(await content(p), ['in.txt: inside']);
  },
  'locator.drop with a file': async ({ reuse }) => {
    const p = await reuse(`<div style="height: 100px" ondragover="event.preventDefault()"
      ondrop="event.preventDefault(); event.dataTransfer.files[0].text().then((t) => { document.title = t })">here</div>`);
    await p.locator('div').drop({ files: { name: 'up.txt', mimeType: 'text/plain', buffer: Buffer.from('dropped') } });
    await p.waitForFunction(() => document.title === 'dropped', null, { polling: 50 });
  },
  'page.waitForEvent(\'download\'), download.path': async ({ visit }) => {
    const d = await download(await visit('<a href=/download>get</a>'));
    assert.equal(d.suggestedFilename(), 'report.txt');
    assert.equal(await d.failure(), null);
    assert.equal(await readFile(await d.path(), 'utf8'), 'a report');
  },
  'download.saveAs': async ({ visit, dir }) => {
    const d = await download(await visit('<a href=/download>get</a>'));
    await d.saveAs(join(dir, 'saved.txt'));
    assert.equal(await readFile(join(dir, 'saved.txt'), 'utf8'), 'a report');
  },
  'download.createReadStream': async ({ visit }) => {
    const d = await download(await visit('<a href=/download>get</a>'));
    assert.equal(await text(await d.createReadStream()), 'a report', 'the stream has another text');
  },
  'download in a new context': async ({ open, html }) => {
    const p = await open();
    await p.goto(html('<a href=/download>get</a>'));
    const d = await download(p);
    assert.equal(await readFile(await d.path(), 'utf8'), 'a report');
  },
  'download of a data: address': async ({ visit }) => {
    const d = await download(await visit('<a href="data:text/plain,text" download=named.txt>get</a>'));
    assert.equal(d.suggestedFilename(), 'named.txt');
    assert.equal(await readFile(await d.path(), 'utf8'), 'text');
  },
  'download.cancel': async ({ visit }) => {
    const d = await download(await visit('<a href=/endless>get</a>'));
    await d.cancel();
    assert.equal(await d.failure(), 'canceled');
  },
  'download.delete': async ({ visit }) => {
    const d = await download(await visit('<a href=/download>get</a>'));
    const path = await d.path();
    await d.delete();
    await assert.rejects(readFile(path), { code: 'ENOENT' }, basename(path));
  },
};
