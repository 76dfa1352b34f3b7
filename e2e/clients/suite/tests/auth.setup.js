import { test as setup } from '@playwright/test';
import { LoginPage } from '../pages/login.js';

for (const user of ['ada', 'bob']) {
  setup(`log in as ${user}`, async ({ page }) => {
    const login = new LoginPage(page);
    await login.goto();
    await login.logIn(user, 'a secret');
    await page.waitForURL('**/');
    await page.context().storageState({ path: `auth/${user}.json` });
  });
}
