import { test, expect } from '../pages/fixtures.js';

test.describe('a list', () => {
  test.beforeEach(async ({ list }) => {
    await list.add('bread', 'butter');
  });
  test('has the items that were added', async ({ list }) => {
    await expect(list.items).toHaveText([/bread/, /butter/]);
  });
  test('counts open items', async ({ list }) => {
    await list.complete('bread');
    await expect(list.count).toHaveText('1 open');
  });
  test('shows only open items', async ({ list }) => {
    await list.complete('bread');
    await list.show('open');
    await expect(list.items).toHaveText([/butter/]);
  });
  test('loses removed items', async ({ list }) => {
    await list.remove('bread');
    await expect(list.item('bread')).toHaveCount(0);
    await expect(list.items).toHaveCount(1);
  });
  test('survives a reload', async ({ list, page }) => {
    await list.complete('butter');
    await page.reload();
    await expect(list.item('butter').getByRole('checkbox')).toBeChecked();
  });
  test('survives back and forward', async ({ list, page }) => {
    await page.goto('/');
    await page.goBack();
    await expect(list.items).toHaveCount(2);
    await page.goForward();
    await expect(page.getByRole('heading')).toContainText('Hello');
  });
  test('is shown in another tab', async ({ list, context, page }) => {
    const other = await context.newPage();
    await other.goto(page.url());
    await expect(other.getByRole('listitem')).toHaveCount(2);
    expect(context.pages()).toHaveLength(2);
    await other.close();
  });
});
