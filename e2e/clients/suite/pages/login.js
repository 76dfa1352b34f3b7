import { expect } from '@playwright/test';

export class LoginPage {
  constructor(page) {
    this.page = page;
    this.user = page.getByLabel('User');
    this.password = page.getByLabel('Password');
    this.button = page.getByRole('button', { name: 'Log in' });
    this.error = page.getByRole('alert');
  }
  async goto() {
    await this.page.goto('/login');
    await expect(this.button).toBeVisible();
  }
  async logIn(user, password) {
    await this.user.fill(user);
    await this.password.fill(password);
    await this.button.click();
  }
}
