// What clients may do with a plain Chrome, and what a session may have to refuse.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export default {
  'page.goto, file: address': async ({ page, dir }) => {
    const path = join(dir, 'local.html');
    await writeFile(path, '<title>local</title>');
    const p = await page();
    await p.goto(pathToFileURL(path).href);
    assert.equal(await p.title(), 'local');
  },
  'page.goto, chrome: address': async ({ page }) => {
    const p = await page();
    await p.goto('chrome://version');
    assert.match(p.url(), /^chrome:\/\/version/);
  },
  'page.openDevTools': async ({ visit }) => {
    const p = await visit('');
    const tools = await p.openDevTools();
    assert.match(tools.url(), /^devtools:/);
  },
};
