// Features of Playwright that read and write what sites store.
import assert from 'node:assert/strict';

/** put writes a record to IndexedDB, get reads it. */
const put = () => new Promise((resolve) => {
  const open = indexedDB.open('db');
  open.onupgradeneeded = () => open.result.createObjectStore('s').put('kept', 'k');
  open.onsuccess = () => { open.result.close(); resolve(); };
});
const get = () => new Promise((resolve) => {
  const open = indexedDB.open('db');
  open.onsuccess = () => {
    const read = open.result.transaction('s').objectStore('s').get('k');
    read.onsuccess = () => { open.result.close(); resolve(read.result); };
  };
});

export default {
  'context.addCookies, cookies, clearCookies': async ({ context, reuse, site }) => {
    const expires = Math.round(Date.now() / 1000) + 3600;
    await context.addCookies([{ name: 'a', value: '1', url: site, sameSite: 'Lax', expires }, { name: 'b', value: '2', url: site, httpOnly: true }]);
    const p = await reuse('');
    assert.equal(await p.evaluate(() => document.cookie), 'a=1');
    const [a, b] = (await context.cookies(site)).sort((x, y) => (x.name < y.name ? -1 : 1));
    assert.deepEqual([a.name, a.sameSite, a.expires, b.httpOnly, b.expires], ['a', 'Lax', expires, true, -1]);
    await context.clearCookies({ name: /^[ab]$/ });
    assert.deepEqual(await context.cookies(site), []);
  },
  'context.storageState, newContext({storageState})': async ({ context, page, open, other }) => {
    const p = await page();
    await p.goto(`${other}/cookie?set=${encodeURIComponent('login=1; Max-Age=3600')}`);
    await p.evaluate(() => { localStorage.who = 'ada'; });
    await p.evaluate(put);
    const storageState = await context.storageState({ indexedDB: true });
    const q = await open({ storageState });
    await q.goto(`${other}/next.html`);
    assert.deepEqual(await q.evaluate(() => [document.cookie, localStorage.who]), ['login=1', 'ada']);
    assert.equal(await q.evaluate(get), 'kept');
  },
  'context.setStorageState': async ({ open, other }) => {
    const p = await open();
    await p.context().setStorageState({ cookies: [], origins: [{ origin: other, localStorage: [{ name: 'who', value: 'bob' }] }] });
    await p.goto(`${other}/next.html`);
    assert.equal(await p.evaluate(() => localStorage.who), 'bob');
  },
  'page.localStorage, page.sessionStorage': async ({ reuse }) => {
    const p = await reuse('');
    await p.localStorage.setItem('a', '1');
    await p.sessionStorage.setItem('b', '2');
    assert.deepEqual(await p.evaluate(() => [localStorage.a, sessionStorage.b]), ['1', '2']);
    assert.equal(await p.localStorage.getItem('a'), '1');
    await p.localStorage.clear();
  },
  'context.credentials (passkeys)': async ({ open, site }) => {
    const p = await open();
    await p.context().credentials.install();
    await p.context().credentials.create('localhost');
    await p.goto(site.replace('127.0.0.1', 'localhost') + '/next.html');
    const id = await p.evaluate(async () => (await navigator.credentials.get({ publicKey: { challenge: new Uint8Array(16), rpId: 'localhost' } })).id);
    assert.ok(id);
  },
};
