// Features of Puppeteer that emulate devices, places and preferences.
import assert from 'node:assert/strict';
import { KnownDevices, PredefinedNetworkConditions } from 'puppeteer-core';

export default {
  'page.setViewport': async ({ visit }) => {
    const p = await visit('');
    await p.setViewport({ width: 500, height: 400, deviceScaleFactor: 2 });
    assert.deepEqual(await p.evaluate(() => [innerWidth, innerHeight, devicePixelRatio]), [500, 400, 2]);
    await p.setViewport(null);
  },
  "page.emulate(KnownDevices['Pixel 5'])": async ({ page, html }) => {
    const p = await page();
    await p.emulate(KnownDevices['Pixel 5']);
    await p.emulateNetworkConditions(PredefinedNetworkConditions['Fast 4G']);
    await p.goto(html('<meta name=viewport content="width=device-width">'));
    assert.deepEqual(await p.evaluate(() => [innerWidth, navigator.maxTouchPoints > 0, /Android/.test(navigator.userAgent)]), [393, true, true]);
  },
  'page.setGeolocation, overridePermissions': async ({ context, reuse, site }) => {
    await context.overridePermissions(site, ['geolocation']);
    try {
      const p = await reuse('');
      await p.setGeolocation({ latitude: 48, longitude: 16 });
      assert.deepEqual(await p.evaluate(() => new Promise((resolve, reject) => {
        navigator.geolocation.getCurrentPosition(({ coords }) => resolve([coords.latitude, coords.longitude]), (e) => reject(new Error(e.message)));
      })), [48, 16]);
    } finally {
      await context.clearPermissionOverrides();
    }
  },
  'page.emulateTimezone, emulateMediaFeatures, emulateMediaType': async ({ visit }) => {
    const p = await visit('');
    await p.emulateTimezone('Asia/Tokyo');
    await p.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
    assert.deepEqual(await p.evaluate(() => [Intl.DateTimeFormat().resolvedOptions().timeZone, matchMedia('(prefers-color-scheme: dark)').matches]), ['Asia/Tokyo', true]);
    await p.emulateMediaType('print'); // it replaces the features
    assert.ok(await p.evaluate(() => matchMedia('print').matches));
  },
  'page.emulateCPUThrottling, emulateVisionDeficiency, emulateIdleState': async ({ context, visit, site }) => {
    await context.overridePermissions(site, ['idle-detection']);
    try {
      const p = await visit('');
      await p.emulateCPUThrottling(2);
      await p.emulateVisionDeficiency('achromatopsia');
      await p.emulateIdleState({ isUserActive: false, isScreenUnlocked: false });
      assert.equal(await p.evaluate(async () => { const d = new IdleDetector(); await d.start({ threshold: 60000 }); return d.screenState; }), 'locked');
    } finally {
      await context.clearPermissionOverrides();
    }
  },
  'page.setJavaScriptEnabled, setBypassCSP': async ({ page, html, site }) => {
    const p = await page();
    await p.setJavaScriptEnabled(false);
    await p.goto(html('<title>none</title><script>document.title = "ran"</script>'));
    assert.equal(await p.title(), 'none');
    await p.setJavaScriptEnabled(true);
    await p.setBypassCSP(true);
    await p.goto(`${site}/no-scripts`);
    await p.addScriptTag({ content: 'window.ran = 1' });
    assert.equal(await p.evaluate(() => window.ran), 1);
  },
};
