import { readFile } from 'node:fs/promises';
import { test, expect } from '@playwright/test';

test.beforeEach(({ page }) => page.goto('/files'));

const start = async (page, name) => {
  const waiting = page.waitForEvent('download');
  await page.getByRole('link', { name }).click();
  return waiting;
};
test('saves a download', async ({ page }, info) => {
  const download = await start(page, 'Report');
  const path = info.outputPath('saved', download.suggestedFilename());
  await download.saveAs(path);
  expect(await readFile(path, 'utf8')).toBe('a report\n'.repeat(1000));
  expect(download.suggestedFilename()).toBe('report.txt');
});
test('reads a download from its path', async ({ page }) => {
  const download = await start(page, 'Report');
  expect(await download.failure()).toBeNull();
  expect(await readFile(await download.path(), 'utf8')).toBe('a report\n'.repeat(1000));
});
test('reads a download as a stream', async ({ page }) => {
  const chunks = [];
  for await (const chunk of await (await start(page, 'Report')).createReadStream()) chunks.push(chunk);
  expect(Buffer.concat(chunks).toString()).toBe('a report\n'.repeat(1000));
});
test('saves two downloads of one name', async ({ page }, info) => {
  for (const name of ['first', 'second']) {
    const path = info.outputPath(name);
    await (await start(page, 'Report')).saveAs(path);
    expect((await readFile(path)).length).toBe(9000);
  }
});
test('saves what the page made', async ({ page }, info) => {
  const path = info.outputPath('made.csv');
  await (await start(page, 'Made here')).saveAs(path);
  expect(await readFile(path, 'utf8')).toBe('a,b\n1,2\n');
});
test('saves a download of a pop-up', async ({ page }, info) => {
  const popping = page.waitForEvent('popup');
  await page.getByRole('link', { name: 'In a window' }).click();
  const popup = await popping;
  const path = info.outputPath('popup.txt');
  await (await start(popup, 'Report')).saveAs(path);
  expect((await readFile(path)).length).toBe(9000);
});
test('reports a refused download', async ({ browser, baseURL }) => {
  const context = await browser.newContext({ acceptDownloads: false, baseURL });
  const page = await context.newPage();
  await page.goto('/files');
  expect(await (await start(page, 'Report')).failure()).toBeTruthy();
  await context.close();
});
test('uploads a file by its path', async ({ page }) => {
  await page.getByLabel('File').setInputFiles(new URL('../files/hello.txt', import.meta.url).pathname);
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(page.getByTestId('received')).toHaveText('hello.txt: hello');
});
test('uploads buffers', async ({ page }) => {
  await page.getByLabel('File').setInputFiles([{ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('one') }, { name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('two') }]);
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(page.getByTestId('received')).toHaveText('a.txt: one b.txt: two');
});
test('uploads with the file chooser', async ({ page }) => {
  const choosing = page.waitForEvent('filechooser');
  await page.getByLabel('File').click();
  await (await choosing).setFiles(new URL('../files/hello.txt', import.meta.url).pathname);
  await page.getByRole('button', { name: 'Send' }).click();
  await expect(page.getByTestId('received')).toHaveText('hello.txt: hello');
});
