// What clients may do with a plain Chrome, and what a session may have to refuse.
import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

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
  'page.goto, view-source: address': async ({ page, site }) => {
    const p = await page();
    await p.goto(`view-source:${site}/next.html`);
    assert.match(await p.evaluate(() => document.body.innerText), /<title>next/);
  },
  'Extensions.loadUnpacked by CDP': async ({ browser, dir }) => {
    const session = await browser.newBrowserCDPSession();
    await writeFile(join(dir, 'manifest.json'), '{"manifest_version": 3, "name": "x", "version": "1"}');
    await session.send('Extensions.loadUnpacked', { path: dir });
  },
  'SystemInfo.getInfo by CDP': async ({ browser }) => {
    const session = await browser.newBrowserCDPSession();
    assert.ok((await session.send('SystemInfo.getInfo')).modelName !== undefined);
  },
};
