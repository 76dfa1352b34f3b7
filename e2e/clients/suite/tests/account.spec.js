import { test, expect } from '../pages/fixtures.js';

test('the API knows the user', async ({ request, owner }) => {
  const answer = await request.get('/api/me');
  expect(answer).toBeOK();
  expect(await answer.json()).toEqual({ user: owner });
});
test('requests of a page have its cookies', async ({ page, owner }) => {
  expect(await (await page.request.get('/api/me')).json()).toEqual({ user: owner });
});
test('fetch in a page has its cookies', async ({ page, owner }) => {
  await page.goto('/');
  expect(await page.evaluate(() => fetch('/api/me').then((a) => a.json()))).toEqual({ user: owner });
});
test('requests without the state are anonymous', async ({ playwright, baseURL }) => {
  const anonymous = await playwright.request.newContext({ baseURL, storageState: { cookies: [], origins: [] } });
  expect((await anonymous.get('/api/me')).status()).toBe(401);
  await anonymous.dispose();
});
test('the preference of the login is in localStorage', async ({ page, owner }) => {
  await page.goto('/');
  expect(await page.evaluate(() => localStorage.getItem('last-user'))).toBe(owner);
});
test('a second user beside the first', async ({ page, browser, owner }) => {
  const other = owner === 'ada' ? 'bob' : 'ada';
  const context = await browser.newContext({ storageState: `auth/${other}.json` });
  const second = await context.newPage();
  await Promise.all([page.goto('/'), second.goto('/')]);
  await expect(page.getByRole('heading')).toHaveText(`Hello, ${owner}`);
  await expect(second.getByRole('heading')).toHaveText(`Hello, ${other}`);
  expect(browser.contexts()).toContain(context);
  await context.close();
});
