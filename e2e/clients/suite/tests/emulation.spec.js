import { test, expect, devices } from '@playwright/test';

const value = (page, expression) => page.evaluate(expression);

test('the default size', async ({ page }) => {
  await page.goto('/');
  expect(await value(page, '[innerWidth, innerHeight, devicePixelRatio]')).toEqual([1280, 720, 1]);
  expect(await value(page, 'navigator.language')).toBe('en-US');
});
test.describe('a phone', () => {
  const { defaultBrowserType, ...phone } = devices['Pixel 7'];
  test.use(phone);
  test('is narrow and has touch', async ({ page }) => {
    await page.goto('/emulation');
    expect(await value(page, 'innerWidth')).toBe(412);
    expect(await value(page, 'navigator.userAgent')).toContain('Android');
    await page.getByRole('button', { name: 'Tap' }).tap();
    await expect(page.getByTestId('tapped')).toHaveText('touch');
  });
});
test.describe('another country', () => {
  test.use({ locale: 'de-DE', timezoneId: 'Asia/Tokyo', colorScheme: 'dark', reducedMotion: 'reduce' });
  test('has its language, time and colours', async ({ page }) => {
    await page.goto('/');
    expect(await value(page, 'navigator.language')).toBe('de-DE');
    expect(await value(page, 'Intl.DateTimeFormat().resolvedOptions().timeZone')).toBe('Asia/Tokyo');
    expect(await value(page, "(1234.5).toLocaleString()")).toBe('1.234,5');
    expect(await value(page, "matchMedia('(prefers-color-scheme: dark)').matches")).toBe(true);
    expect(await value(page, "matchMedia('(prefers-reduced-motion: reduce)').matches")).toBe(true);
  });
});
test.describe('a place', () => {
  test.use({ geolocation: { latitude: 41.9, longitude: 12.5 }, permissions: ['geolocation'] });
  test('is where the page is', async ({ page }) => {
    await page.goto('/');
    const at = await page.evaluate(() => new Promise((ok, no) => navigator.geolocation.getCurrentPosition((p) => ok(p.coords.latitude), (e) => no(e.message))));
    expect(at).toBe(41.9);
  });
});
test.describe('headers', () => {
  test.use({ extraHTTPHeaders: { 'x-place': 'Oslo' }, userAgent: 'a test' });
  test('go to the site', async ({ page, request }) => {
    await page.goto('/weather');
    await page.getByRole('button', { name: 'Load' }).click();
    await expect(page.getByTestId('report')).toHaveText('rain in Oslo');
    expect(await value(page, 'navigator.userAgent')).toBe('a test');
    expect(await (await request.get('/api/weather')).json()).toEqual({ weather: 'rain in Oslo' });
  });
});
test.describe('no scripts', () => {
  test.use({ javaScriptEnabled: false });
  test('run', async ({ page }) => {
    await page.goto('/emulation');
    await expect(page.getByTestId('script')).toHaveText('none');
  });
});
test('works offline and again online', async ({ page, context }) => {
  await page.goto('/weather');
  await context.setOffline(true);
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(page.getByTestId('report')).toHaveText('no answer');
  await context.setOffline(false);
  await page.getByRole('button', { name: 'Load' }).click();
  await expect(page.getByTestId('report')).toHaveText('rain');
});
test('grants the clipboard', async ({ page, context, baseURL }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: baseURL });
  await page.goto('/');
  expect(await page.evaluate(() => navigator.permissions.query({ name: 'clipboard-read' }).then((p) => p.state))).toBe('granted');
  await context.clearPermissions();
});
test('an init script runs first', async ({ page, context }) => {
  await context.addInitScript(() => { window.first = 'set'; });
  await page.exposeFunction('double', (n) => 2 * n);
  await page.goto('/');
  expect(await value(page, '[window.first]')).toEqual(['set']);
  expect(await value(page, 'double(21)')).toBe(42);
});
test('adds a cookie', async ({ page, context, baseURL }) => {
  const name = `seen-${Date.now()}`;
  await context.addCookies([{ name, value: 'yes', url: baseURL }]);
  await page.goto('/');
  expect((await context.cookies()).map((c) => c.name)).toEqual(expect.arrayContaining(['login', name]));
});
test('reads the state of the context', async ({ page, context, baseURL }) => {
  await page.goto('/');
  const state = await context.storageState();
  expect(state.cookies.map((c) => c.name)).toContain('login');
  expect(state.origins.find((o) => o.origin === baseURL).localStorage).toContainEqual({ name: 'last-user', value: 'ada' });
});
