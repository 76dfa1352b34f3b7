// The suite with a launched Chromium: the setup project logs in and writes the files of storageState.
import { defineConfig, devices } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  fullyParallel: true,
  workers: 3,
  retries: 1,
  timeout: 120_000,
  expect: { timeout: 60_000 },
  reporter: [['json', { outputFile: process.env.RESULTS }]],
  use: {
    baseURL: process.env.SITE,
    ...devices['Desktop Chrome'],
    launchOptions: { executablePath: process.env.CHROMIUM },
    trace: process.env.RECORD ?? 'off',
    screenshot: process.env.RECORD ?? 'off',
  },
  projects: [
    { name: 'setup', testMatch: /.*\.setup\.js/ },
    { name: 'ada', dependencies: ['setup'], use: { storageState: 'auth/ada.json' } },
    { name: 'bob', dependencies: ['setup'], testMatch: /(login|lists|account)\.spec\.js/, use: { storageState: 'auth/bob.json' } },
  ],
});
