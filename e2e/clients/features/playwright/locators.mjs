// Features of Playwright that find elements and wait for them.
import assert from 'node:assert/strict';

const form = `<form><label for=name>Name</label><input id=name placeholder="Your name" title=who>
  <button data-testid=send type=button>Send</button><img alt=logo src=/image.svg></form>
  <ul><li>one</li><li class=even>two</li><li>three <b>bold</b></li></ul>`;

export default {
  'page.getByRole, getByLabel, getByText, …': async ({ reuse }) => {
    const p = await reuse(form);
    const found = [p.getByRole('button', { name: 'Send' }), p.getByLabel('Name'), p.getByText('three'), p.getByTestId('send'),
      p.getByPlaceholder('Your name'), p.getByAltText('logo'), p.getByTitle('who')];
    assert.deepEqual(await Promise.all(found.map((l) => l.count())), found.map(() => 1));
  },
  'locator.filter, nth, and, or, all': async ({ reuse }) => {
    const items = (await reuse(form)).locator('li');
    assert.equal(await items.filter({ hasText: 'two' }).textContent(), 'two');
    assert.match(await items.filter({ has: items.page().locator('b') }).innerText(), /three/);
    assert.equal(await items.nth(1).and(items.page().locator('.even')).count(), 1);
    assert.equal(await items.first().or(items.last()).count(), 2);
    assert.equal((await items.all()).length, 3);
  },
  'CSS, XPath and text selectors': async ({ reuse }) => {
    const p = await reuse(form);
    assert.equal(await p.locator('xpath=//li[2]').innerText(), 'two');
    assert.equal(await p.locator('css=li >> nth=0').innerText(), 'one');
    assert.equal(await p.locator('text=/^tw/').count(), 1);
    assert.equal(await p.locator('li:has(b)').count(), 1);
  },
  'selectors pierce shadow DOM': async ({ reuse }) => {
    const p = await reuse(`<div id=host></div><script>
      host.attachShadow({mode: 'open'}).innerHTML = '<button onclick="document.title = 1">inside</button>'</script>`);
    await p.getByRole('button', { name: 'inside' }).click();
    assert.equal(await p.title(), '1');
  },
  'locator.isVisible, isEnabled, isChecked, …': async ({ reuse }) => {
    const p = await reuse('<input type=checkbox checked disabled><p hidden>no</p><input id=t value=v>');
    const box = p.locator('[type=checkbox]');
    assert.deepEqual([await box.isChecked(), await box.isEnabled(), await p.locator('p').isVisible(), await p.locator('#t').inputValue()],
      [true, false, false, 'v']);
  },
  'locator.boundingBox, evaluate, evaluateAll': async ({ reuse }) => {
    const p = await reuse('<p style="width: 100px; height: 50px">x</p><p>y</p>');
    const { width, height } = await p.locator('p').first().boundingBox();
    assert.deepEqual([width, height], [100, 50]);
    assert.equal(await p.locator('p').first().evaluate((e, n) => e.textContent + n, 1), 'x1');
    assert.equal(await p.locator('p').evaluateAll((all) => all.length), 2);
  },
  'locator.waitFor, page.waitForSelector': async ({ reuse }) => {
    const p = await reuse('<script>setTimeout(() => document.body.append(Object.assign(document.createElement("i"), {textContent: "late"})), 50)</script><p>x');
    await p.locator('i').waitFor();
    await p.waitForSelector('i', { state: 'attached' });
    await p.evaluate(() => { setTimeout(() => document.querySelector('i').remove(), 50); });
    await p.locator('i').waitFor({ state: 'detached' });
  },
  'page.waitForFunction': async ({ reuse }) => {
    const p = await reuse('<script>setTimeout(() => { window.ready = 5; }, 50)</script>');
    assert.equal(await (await p.waitForFunction((n) => window.ready === n && window.ready, 5)).jsonValue(), 5);
  },
  'page.addLocatorHandler': async ({ visit }) => {
    const p = await visit('<button onclick="document.title = 1">go</button><dialog open style="position: fixed; inset: 0; width: 100vw; height: 100vh"><button onclick="this.parentElement.close()">Accept</button></dialog>');
    await p.addLocatorHandler(p.locator('dialog'), () => p.getByText('Accept').click());
    await p.getByText('go', { exact: true }).click();
    assert.equal(await p.title(), '1');
  },
  'page.ariaSnapshot': async ({ reuse }) => {
    const p = await reuse('<h1>Title</h1><button>Send</button>');
    assert.match(await p.locator('body').ariaSnapshot(), /heading "Title"[^]*button "Send"/);
  },
};
