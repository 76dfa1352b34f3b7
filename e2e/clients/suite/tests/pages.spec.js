import { test, expect } from '@playwright/test';

test.describe('dialogs', () => {
  test.beforeEach(({ page }) => page.goto('/dialogs'));
  test('an alert', async ({ page }) => {
    let message;
    page.once('dialog', async (d) => { message = d.message(); await d.accept(); });
    await page.getByRole('button', { name: 'Alert' }).click();
    expect(message).toBe('careful');
  });
  test('a confirmation that is accepted', async ({ page }) => {
    page.once('dialog', (d) => d.accept());
    await page.getByRole('button', { name: 'Confirm' }).click();
    await expect(page.getByTestId('said')).toHaveText('true');
  });
  test('a confirmation without a listener', async ({ page }) => {
    await page.getByRole('button', { name: 'Confirm' }).click();
    await expect(page.getByTestId('said')).toHaveText('false');
  });
  test('a prompt', async ({ page }) => {
    page.once('dialog', (d) => d.accept('yes, please'));
    await page.getByRole('button', { name: 'Prompt' }).click();
    await expect(page.getByTestId('said')).toHaveText('yes, please');
  });
});

test.describe('pop-ups', () => {
  test.beforeEach(({ page }) => page.goto('/popups'));
  test('a link to a new tab', async ({ page, context }) => {
    const [tab] = await Promise.all([context.waitForEvent('page'), page.getByRole('link', { name: 'New tab' }).click()]);
    await expect(tab.getByRole('heading')).toHaveText('Hello, ada');
  });
  test('window.open', async ({ page }) => {
    const [popup] = await Promise.all([page.waitForEvent('popup'), page.getByRole('button', { name: 'Open' }).click()]);
    await expect(popup.getByRole('heading')).toHaveText('Hello, ada');
    expect(await popup.opener()).toBe(page);
    await popup.close();
  });
  test('a pop-up writes to its opener and closes', async ({ page }) => {
    const [popup] = await Promise.all([page.waitForEvent('popup'), page.getByRole('button', { name: 'Ask' }).click()]);
    await popup.getByRole('button', { name: 'Answer' }).click();
    await expect(page.getByTestId('answer')).toHaveText('42');
    await expect.poll(() => popup.isClosed()).toBe(true);
  });
});

test.describe('frames', () => {
  test.beforeEach(({ page }) => page.goto('/frames'));
  test('a frame is logged in', async ({ page }) => {
    await expect(page.frameLocator('#home').getByRole('heading')).toHaveText('Hello, ada');
  });
  test('a frame in a frame', async ({ page }) => {
    await expect(page.frameLocator('#outer').frameLocator('iframe').getByRole('heading')).toHaveText('Hello, ada');
  });
  test('a frame by its name', async ({ page }) => {
    await page.waitForLoadState();
    expect(page.frame('home').url()).toMatch(/\/$/);
  });
});

test.describe('locators', () => {
  test.beforeEach(({ page }) => page.goto('/table'));
  test('a row by a cell', async ({ page }) => {
    await page.getByRole('row').filter({ has: page.getByRole('cell', { name: 'Bolt' }) }).getByRole('button', { name: 'Buy' }).click();
    await expect(page.getByRole('status')).toHaveText('bought Bolt');
  });
  test('the last of several', async ({ page }) => {
    await page.getByText('Buy', { exact: true }).last().click();
    await expect(page.getByRole('status')).toHaveText('bought Washer');
  });
  test('drag and drop', async ({ page }) => {
    await page.getByTestId('from').dragTo(page.getByTestId('to'));
    await expect(page.getByTestId('to')).toHaveText('dropped');
  });
  test('keys and the mouse', async ({ page }) => {
    await page.getByRole('textbox').click();
    await page.keyboard.type('Hello');
    await page.keyboard.press('Shift+ArrowLeft');
    await page.keyboard.press('Delete');
    await expect(page.getByRole('textbox')).toHaveValue('Hell');
    await page.getByTestId('hover').hover();
    await expect(page.getByTestId('hover')).toHaveCSS('color', 'rgb(255, 0, 0)');
  });
  test('the tree of accessibility', async ({ page }) => {
    await expect(page.getByRole('table')).toMatchAriaSnapshot(`
      - table:
        - rowgroup:
          - row "Nut Buy"
          - row "Bolt Buy"
          - row "Washer Buy"
    `);
  });
  test('a picture of an element', async ({ page }) => {
    expect((await page.getByRole('table').screenshot()).subarray(1, 4).toString()).toBe('PNG');
  });
});

test.describe('waiting', () => {
  test('polls a slow task', async ({ page }) => {
    const { id } = await (await page.request.post('/api/jobs')).json();
    await expect.poll(async () => (await (await page.request.get(`/api/jobs/${id}`)).json()).state, { intervals: [50] }).toBe('done');
  });
  test('repeats a block', async ({ page }) => {
    await page.goto('/weather');
    await expect(async () => {
      await page.getByRole('button', { name: 'Load' }).click();
      await expect(page.getByTestId('times')).toHaveText('3', { timeout: 100 });
    }).toPass();
  });
  test('sets the clock', async ({ page }) => {
    await page.clock.install({ time: new Date('2030-01-01T00:00:00Z') });
    await page.goto('/weather');
    await page.clock.fastForward('01:00:00');
    expect(await page.evaluate(() => new Date().toISOString())).toMatch(/^2030-01-01T01:00/);
  });
  test('fails as expected', async ({ page }) => {
    test.fail();
    await page.goto('/');
    await expect(page).toHaveTitle('another title', { timeout: 200 });
  });
  test('is skipped', async ({ page }) => {
    test.skip(true, 'not yet');
    await page.goto('/');
  });
  test('succeeds when it is retried', async ({ page }, info) => {
    await page.goto('/');
    await expect(page.getByRole('heading')).toHaveText(info.retry ? 'Hello, ada' : 'Hello', { timeout: 200 });
  });
});
