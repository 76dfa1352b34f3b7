// Features of Playwright that emulate devices, places and preferences.
import assert from 'node:assert/strict';
import { devices } from 'playwright-core';

export default {
  'page.setViewportSize': async ({ visit }) => {
    const p = await visit('');
    await p.setViewportSize({ width: 500, height: 400 });
    assert.deepEqual(await p.evaluate(() => [innerWidth, innerHeight]), [500, 400]);
  },
  'newContext({viewport, deviceScaleFactor})': async ({ open }) => {
    const p = await open({ viewport: { width: 600, height: 300 }, deviceScaleFactor: 2 });
    assert.deepEqual(await p.evaluate(() => [innerWidth, innerHeight, devicePixelRatio]), [600, 300, 2]);
  },
  "newContext(devices['Pixel 5'])": async ({ open, html }) => {
    const p = await open(devices['Pixel 5']);
    await p.goto(html('<meta name=viewport content="width=device-width">'));
    assert.deepEqual(await p.evaluate(() => [innerWidth, navigator.maxTouchPoints > 0, /Android/.test(navigator.userAgent), matchMedia('(pointer: coarse)').matches]),
      [393, true, true, true]);
  },
  'newContext({userAgent, extraHTTPHeaders})': async ({ open, site }) => {
    const p = await open({ userAgent: 'mine', extraHTTPHeaders: { 'x-extra': 'yes' } });
    const { headers } = await (await p.goto(`${site}/echo`)).json();
    assert.deepEqual([headers['user-agent'], headers['x-extra'], await p.evaluate(() => navigator.userAgent)], ['mine', 'yes', 'mine']);
  },
  'newContext({locale, timezoneId})': async ({ open, site }) => {
    const p = await open({ locale: 'de-DE', timezoneId: 'Asia/Tokyo' });
    const { headers } = await (await p.goto(`${site}/echo`)).json();
    assert.match(headers['accept-language'], /^de-DE/);
    assert.deepEqual(await p.evaluate(() => [navigator.language, (1.5).toLocaleString(), Intl.DateTimeFormat().resolvedOptions().timeZone]), ['de-DE', '1,5', 'Asia/Tokyo']);
  },
  'setGeolocation, grantPermissions': async ({ context, reuse, site }) => {
    await context.grantPermissions(['geolocation'], { origin: site });
    try {
      await context.setGeolocation({ latitude: 48, longitude: 16 });
      const p = await reuse('');
      const at = await p.evaluate(() => new Promise((resolve, reject) => { navigator.geolocation.getCurrentPosition(({ coords }) => resolve([coords.latitude, coords.longitude]), (e) => reject(new Error(e.message))); }));
      assert.deepEqual(at, [48, 16]);
      await context.setGeolocation(null);
    } finally {
      await context.clearPermissions();
    }
  },
  'grantPermissions of notifications, new Notification': async ({ context, reuse, site }) => {
    await context.grantPermissions(['notifications'], { origin: site });
    try {
      const p = await reuse('');
      const outcome = await p.evaluate(() => new Promise((resolve) => {
        const made = new Notification('hello');
        made.onshow = () => resolve('shown');
        made.onerror = () => resolve('refused');
      }));
      assert.equal(outcome, 'shown', `the notification was ${outcome}`);
    } finally {
      await context.clearPermissions();
    }
  },
  'permissions nobody has granted': async ({ reuse }) => {
    const p = await reuse('');
    const answer = await p.evaluate(() => Notification.requestPermission());
    assert.equal(answer, 'denied', `the answer is ${answer}`);
    assert.equal(await p.evaluate(() => new Promise((resolve) => { navigator.geolocation.getCurrentPosition(() => resolve('found'), (e) => resolve(e.code)); })), 1);
  },
  'grantPermissions of camera and microphone': async ({ context, reuse, site }) => {
    await context.grantPermissions(['camera', 'microphone'], { origin: site });
    try {
      const p = await reuse('');
      assert.match(await p.evaluate(() => navigator.mediaDevices.getUserMedia({ audio: true, video: true }).then(() => 'given', (e) => e.name)), /given|NotFoundError/);
    } finally {
      await context.clearPermissions();
    }
  },
  'newContext({permissions})': async ({ open, html }) => {
    const p = await open({ permissions: ['notifications'] });
    await p.goto(html(''));
    const permission = await p.evaluate(() => Notification.permission);
    assert.equal(permission, 'granted', `notifications are ${permission}`);
    await p.context().clearPermissions();
    assert.notEqual(await p.evaluate(() => Notification.permission), 'granted');
  },
  'page.emulateMedia': async ({ visit }) => {
    const p = await visit('');
    const matches = () => p.evaluate(() => ['(prefers-color-scheme: dark)', 'print', '(prefers-reduced-motion: reduce)', '(forced-colors: active)', '(prefers-contrast: more)'].filter((m) => matchMedia(m).matches).length);
    await p.emulateMedia({ colorScheme: 'dark', media: 'print', reducedMotion: 'reduce', forcedColors: 'active', contrast: 'more' });
    assert.equal(await matches(), 5);
    await p.emulateMedia({ colorScheme: null, media: null, reducedMotion: null, forcedColors: null, contrast: null });
    assert.equal(await matches(), 0);
  },
  'navigator.webdriver is false': async ({ reuse }) => {
    const p = await reuse('');
    assert.equal(await p.evaluate(() => navigator.webdriver), false, 'navigator.webdriver is true');
  },
  'WebGL': async ({ reuse }) => {
    const p = await reuse('');
    assert.ok(await p.evaluate(() => document.createElement('canvas').getContext('webgl') !== null), 'there is no WebGL');
  },
  'newContext({javaScriptEnabled: false})': async ({ open, html }) => {
    const p = await open({ javaScriptEnabled: false });
    await p.goto(html('<title>none</title><script>document.title = "ran"</script>'));
    assert.equal(await p.title(), 'none');
  },
  'newContext({bypassCSP})': async ({ open, site }) => {
    const p = await open({ bypassCSP: true });
    await p.goto(`${site}/no-scripts`);
    await p.addScriptTag({ content: 'window.ran = 1' });
    assert.equal(await p.evaluate(() => window.ran), 1);
  },
};
