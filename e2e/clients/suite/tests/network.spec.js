import { test, expect } from '@playwright/test';

test.beforeEach(async ({ page }) => {
  await page.goto('/weather');
});
const report = (page) => page.getByTestId('report');

test('the site answers', async ({ page }) => {
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(report(page)).toHaveText('rain');
});
test('a route answers in place of the site', async ({ page }) => {
  await page.route('**/api/weather', (route) => route.fulfill({ json: { weather: 'sun' } }));
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(report(page)).toHaveText('sun');
});
test('a route changes the answer', async ({ page }) => {
  await page.route('**/api/weather', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { weather: `no ${(await answer.json()).weather}` } });
  });
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(report(page)).toHaveText('no rain');
});
test('a route breaks the request', async ({ page }) => {
  await page.route('**/api/weather', (route) => route.abort());
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(report(page)).toHaveText('no answer');
});
test('a route of the context changes headers', async ({ page, context }) => {
  await context.route('**/api/weather', (route) => route.continue({ headers: { ...route.request().headers(), 'x-place': 'Rome' } }));
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(report(page)).toHaveText('rain in Rome');
  await context.unroute('**/api/weather');
});
test('waits for the request and the answer', async ({ page }) => {
  const [request, answer] = await Promise.all([
    page.waitForRequest('**/api/weather'), page.waitForResponse('**/api/weather'), page.getByRole('button', { name: 'Load' }).click(),
  ]);
  expect(request.method()).toBe('GET');
  expect(await answer.json()).toEqual({ weather: 'rain' });
});
test('a route of one test is not in the next', async ({ page }) => {
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(report(page)).toHaveText('rain');
});
test('records the errors of the console', async ({ page }) => {
  const errors = [];
  page.on('console', (m) => m.type() === 'error' && errors.push(m.text()));
  page.on('pageerror', (e) => errors.push(e.message));
  await page.evaluate(() => { console.error('one'); setTimeout(() => { throw new Error('two'); }); });
  await expect.poll(() => errors).toEqual(['one', 'two']);
});
