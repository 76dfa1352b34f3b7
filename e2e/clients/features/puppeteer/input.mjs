// Features of Puppeteer that type, click, drag and touch.
import assert from 'node:assert/strict';

const listening = (kinds, markup = '<div id=x style="width: 200px; height: 200px">x</div>') =>
  `${markup}<script>window.seen = []; for (const kind of ${JSON.stringify(kinds)}) addEventListener(kind, (e) => seen.push(e))</script>`;

export default {
  'page.click, hover': async ({ reuse }) => {
    const p = await reuse(listening(['click', 'dblclick', 'contextmenu', 'mouseover']));
    await p.hover('#x');
    await p.click('#x', { count: 2 });
    await p.click('#x', { button: 'right' });
    assert.deepEqual(await p.evaluate(() => window.seen.filter((e) => e.isTrusted && e.target.id === 'x').map((e) => e.type)),
      ['mouseover', 'click', 'click', 'dblclick', 'contextmenu']);
  },
  'page.type, keyboard': async ({ reuse }) => {
    const p = await reuse('<input value="a word"><textarea></textarea>');
    await p.focus('input');
    await p.keyboard.down('Control');
    await p.keyboard.press('KeyA', { commands: ['SelectAll'] });
    await p.keyboard.up('Control');
    await p.keyboard.type('one two');
    await p.keyboard.press('Backspace');
    await p.keyboard.sendCharacter('漢');
    await p.type('textarea', 'Grüße\n1');
    assert.deepEqual(await p.$$eval('input, textarea', (all) => all.map((e) => e.value)), ['one tw漢', 'Grüße\n1']);
  },
  'mouse.wheel, mouse.move': async ({ reuse }) => {
    const p = await reuse(listening(['mousedown', 'mouseup'], '<div style="height: 5000px">tall</div>'));
    await p.mouse.move(20, 20);
    await p.mouse.down();
    await p.mouse.move(60, 60, { steps: 3 });
    await p.mouse.up();
    assert.deepEqual(await p.evaluate(() => window.seen.map((e) => e.type)), ['mousedown', 'mouseup']);
    await p.mouse.wheel({ deltaY: 400 });
    await p.waitForFunction(() => scrollY === 400, { polling: 50 });
  },
  'page.tap, touchscreen': async ({ page, html }) => {
    const p = await page();
    await p.setViewport({ width: 500, height: 500, hasTouch: true });
    await p.goto(html(listening(['touchstart', 'touchmove'])));
    await p.tap('#x');
    await p.touchscreen.touchStart(20, 20);
    await p.touchscreen.touchMove(30, 90);
    await p.touchscreen.touchEnd();
    assert.deepEqual(await p.evaluate(() => window.seen.map((e) => e.type)), ['touchstart', 'touchstart', 'touchmove']);
  },
  'page.select': async ({ reuse }) => {
    const p = await reuse('<select multiple><option value=a>A<option value=b>B<option value=c>C</select>');
    assert.deepEqual(await p.select('select', 'a', 'c'), ['a', 'c']);
  },
  'elementHandle.drop (drag and drop)': async ({ reuse }) => {
    const p = await reuse(`<p id=from draggable=true ondragstart="event.dataTransfer.setData('text/plain', 'dragged')">from</p>
      <div id=to style="height: 100px; background: silver" ondragover="event.preventDefault()" ondrop="document.title = event.dataTransfer.getData('text/plain')">to</div>`);
    const [from, to] = [await p.$('#from'), await p.$('#to')];
    await to.drop(from);
    assert.equal(await p.title(), 'dragged');
  },
  'locator.fill, scroll': async ({ reuse }) => {
    const p = await reuse('<input><select><option>a<option>b</select><div style="height: 3000px">tall</div>');
    await p.locator('input').fill('filled');
    await p.locator('select').fill('b');
    assert.deepEqual(await p.$$eval('input, select', (all) => all.map((e) => e.value)), ['filled', 'b']);
    await p.locator('html').scroll({ scrollTop: 300 });
    assert.equal(await p.evaluate(() => scrollY), 300);
  },
  'clipboard': async ({ context, reuse, site }) => {
    await context.overridePermissions(site, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
    try {
      const p = await reuse('');
      await p.bringToFront();
      await p.evaluate(() => navigator.clipboard.writeText('written'));
      assert.equal(await p.evaluate(() => navigator.clipboard.readText()), 'written');
    } finally {
      await context.clearPermissionOverrides();
    }
  },
};
