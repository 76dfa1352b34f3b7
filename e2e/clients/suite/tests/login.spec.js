import { test, expect } from '../pages/fixtures.js';
import { LoginPage } from '../pages/login.js';

test('starts logged in', async ({ page, owner }) => {
  await page.goto('/');
  await expect(page.getByRole('heading')).toHaveText(`Hello, ${owner}`);
});

test('goes past the login page', async ({ page, owner }) => {
  await page.goto('/login');
  await expect(page).toHaveURL(/\/$/);
  await expect(page).toHaveTitle(`Lists of ${owner}`);
});

test.describe('logged out', () => {
  test.use({ storageState: { cookies: [], origins: [] } });

  test('shows the login page', async ({ page }) => {
    await page.goto('/');
    await expect(page).toHaveURL(/\/login$/);
  });
  test('refuses a wrong password', async ({ page }) => {
    const login = new LoginPage(page);
    await login.goto();
    await login.logIn('ada', 'a guess');
    await expect(login.error).toHaveText('Wrong user or password');
  });
  test('logs in and out', async ({ page }) => {
    const login = new LoginPage(page);
    await login.goto();
    await login.logIn('ada', 'a secret');
    await expect(page.getByRole('heading')).toHaveText('Hello, ada');
    await page.getByRole('link', { name: 'Log out' }).click();
    await expect(login.button).toBeVisible();
    expect((await page.context().cookies()).map((c) => c.name)).not.toContain('login');
  });
});
