// The same suite in sessions of Stasis. Nothing below tests/ differs.
import { defineConfig } from '@playwright/test';
import { session, stasis } from '@stasisd/playwright';
import plain from './playwright.config.js';

const how = JSON.parse(process.env.SESSIONS ?? '{}');
const login = (user) => async (page) => {
  await page.goto(`${process.env.SITE}/login`);
  await page.getByLabel('User').fill(user);
  await page.getByLabel('Password').fill('a secret');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL('**/');
};
const user = (name) => session({ user: name, login: login(name), stateFile: `auth/${name}.json`, ...how });
const [, ada, bob] = plain.projects;

export default stasis(defineConfig({
  ...plain,
  projects: [
    { ...ada, dependencies: [], use: user('ada') },
    { ...bob, dependencies: [], use: user('bob') },
  ],
}));
