// Features of Playwright with a second client. They come last: each client of Playwright takes over where downloads go.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export default {
  'two clients at once': async ({ connect, visit, html }) => {
    const p = await visit('<title>mine</title>');
    const another = await connect();
    const [context] = another.contexts();
    const same = context.pages().find((q) => q.url() === p.url());
    assert.equal(await same.title(), 'mine');
    const made = await context.newPage();
    await made.goto(html('<title>yours</title>'));
    await made.close();
    await another.close();
    assert.equal(await p.title(), 'mine');
  },
  'connectOverCDP({isLocal}), setInputFiles': async ({ connect, html, dir, timeout }) => {
    const browser = await connect({ isLocal: true });
    const path = join(dir, 'local.txt');
    await writeFile(path, 'local');
    const p = await browser.contexts()[0].newPage();
    await p.goto(html('<input type=file>'));
    await p.setInputFiles('input', path, { timeout: timeout / 5 });
    assert.deepEqual(await p.locator('input').evaluate(async ({ files }) => [files[0].name, await files[0].text()]), ['local.txt', 'local']);
  },
};
