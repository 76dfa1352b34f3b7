import { randomUUID } from 'node:crypto';
import { test as base } from '@playwright/test';
import { ListPage } from './list.js';

// A list of its own for each test, made with an API request before the test and removed after it.
export const test = base.extend({
  list: async ({ page }, use) => {
    const id = randomUUID();
    await page.request.post('/api/lists', { data: { id } });
    const list = new ListPage(page, id);
    await list.goto();
    await use(list);
    await page.request.delete(`/api/lists/${id}`);
  },
  owner: [async ({}, use, info) => use(info.project.name === 'bob' ? 'bob' : 'ada'), { scope: 'test' }],
});
export { expect } from '@playwright/test';
