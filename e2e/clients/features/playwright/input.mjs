// Features of Playwright that type, click, drag and touch.
import assert from 'node:assert/strict';

/** listening is a page that keeps the events of a kind in window.seen. */
const listening = (kinds, markup = '<div id=x style="width: 200px; height: 200px">x</div>') =>
  `${markup}<script>window.seen = []; for (const kind of ${JSON.stringify(kinds)}) addEventListener(kind, (e) => seen.push(e))</script>`;

export default {
  'locator.click with modifiers and buttons, dblclick': async ({ reuse }) => {
    const p = await reuse(listening(['click', 'dblclick', 'contextmenu']));
    await p.click('#x', { modifiers: ['Shift'], position: { x: 10, y: 10 } });
    await p.click('#x', { button: 'right' });
    await p.dblclick('#x');
    const seen = await p.evaluate(() => window.seen.map((e) => `${e.type} ${e.shiftKey} ${e.isTrusted}`));
    assert.deepEqual(seen, ['click true true', 'contextmenu false true', 'click false true', 'click false true', 'dblclick false true']);
  },
  'locator.hover': async ({ reuse }) => {
    const p = await reuse('<style>i { display: none } p:hover i { display: inline }</style><p>over <i>there</i></p>');
    await p.hover('p');
    assert.ok(await p.locator('i').isVisible());
  },
  'locator.fill, clear, pressSequentially': async ({ reuse }) => {
    const p = await reuse('<input value=old><textarea></textarea><p contenteditable>x</p>');
    await p.fill('input', 'new');
    await p.fill('p', 'edited');
    await p.locator('textarea').pressSequentially('Grüße\n1');
    assert.deepEqual([await p.inputValue('input'), await p.innerText('p'), await p.inputValue('textarea')], ['new', 'edited', 'Grüße\n1']);
    await p.locator('input').clear();
    assert.equal(await p.inputValue('input'), '');
  },
  'page.keyboard': async ({ reuse }) => {
    const p = await reuse('<input value="a word">');
    await p.focus('input');
    await p.keyboard.press('ControlOrMeta+A');
    await p.keyboard.type('one two');
    await p.keyboard.down('Shift');
    for (let i = 0; i < 3; i++) await p.keyboard.press('ArrowLeft');
    await p.keyboard.up('Shift');
    await p.keyboard.press('Backspace');
    await p.keyboard.insertText('漢字');
    assert.equal(await p.inputValue('input'), 'one 漢字');
  },
  'page.mouse, mouse.wheel': async ({ reuse }) => {
    const p = await reuse(listening(['mousedown', 'mousemove', 'mouseup'], '<div style="height: 5000px">tall</div>'));
    await p.mouse.move(20, 20);
    await p.mouse.down();
    await p.mouse.move(60, 60, { steps: 3 });
    await p.mouse.up();
    const seen = await p.evaluate(() => window.seen.map((e) => e.type.slice('mouse'.length)).join(' '));
    assert.match(seen, /^(move )+down (move ){3}up$/); // Chrome may add moves of its own before
    await p.mouse.wheel(0, 400);
    await p.waitForFunction(() => scrollY === 400, null, { polling: 50 });
  },
  'locator.tap, page.touchscreen': async ({ open, html }) => {
    const p = await open({ hasTouch: true });
    await p.goto(html(listening(['touchstart', 'click'])));
    await p.tap('#x');
    await p.touchscreen.tap(20, 20);
    await p.waitForFunction(() => window.seen.length >= 4, null, { polling: 50 });
    assert.deepEqual(await p.evaluate(() => window.seen.map((e) => e.type)), ['touchstart', 'click', 'touchstart', 'click']);
  },
  'locator.check, uncheck': async ({ reuse }) => {
    const p = await reuse('<label><input type=checkbox> a</label><input type=radio>');
    await p.getByLabel('a').check();
    await p.check('[type=radio]');
    assert.ok(await p.isChecked('[type=radio]') && await p.isChecked('[type=checkbox]'));
    await p.getByLabel('a').uncheck();
    assert.equal(await p.isChecked('[type=checkbox]'), false);
  },
  'locator.selectOption': async ({ reuse }) => {
    const p = await reuse('<select multiple><option value=a>A<option value=b>B<option value=c>C</select>');
    assert.deepEqual(await p.selectOption('select', [{ value: 'a' }, { label: 'C' }]), ['a', 'c']);
  },
  'a select by click and keyboard': async ({ reuse }) => {
    const p = await reuse('<select><option>a<option>b<option>c</select>');
    await p.click('select');
    await p.keyboard.press('ArrowDown');
    await p.keyboard.press('ArrowDown');
    await p.keyboard.press('Enter');
    await p.waitForFunction(() => document.querySelector('select').value === 'c', null, { polling: 50 });
  },
  'inputs of date, colour and range': async ({ reuse }) => {
    const p = await reuse('<input type=date><input type=color><input type=range><input list=l><datalist id=l><option>one</datalist>');
    for (const kind of ['date', 'color']) await p.click(`[type=${kind}]`);
    await p.fill('[type=date]', '2030-01-02');
    await p.fill('[type=color]', '#010203');
    await p.fill('[type=range]', '70');
    await p.fill('[list]', 'o');
    assert.deepEqual(await p.locator('input').evaluateAll((all) => all.map((e) => e.value)), ['2030-01-02', '#010203', '70', 'o']);
  },
  'locator.dragTo': async ({ reuse }) => {
    const p = await reuse(`<p id=from draggable=true ondragstart="event.dataTransfer.setData('text/plain', 'dragged')">from</p>
      <div id=to style="height: 100px; background: silver" ondragover="event.preventDefault()" ondrop="document.title = event.dataTransfer.getData('text/plain')">to</div>`);
    await p.locator('#from').dragTo(p.locator('#to'));
    assert.equal(await p.title(), 'dragged');
  },
  'locator.focus, blur, dispatchEvent, selectText': async ({ reuse }) => {
    const p = await reuse('<input value=text onblur="document.title = 1" onpaste="document.title = 2">');
    await p.focus('input');
    await p.locator('input').blur();
    assert.equal(await p.title(), '1');
    await p.dispatchEvent('input', 'paste');
    assert.equal(await p.title(), '2');
    await p.locator('input').selectText();
    assert.equal(await p.evaluate(() => getSelection().toString()), 'text');
  },
  'locator.scrollIntoViewIfNeeded': async ({ reuse }) => {
    const p = await reuse('<div style="height: 5000px">tall</div><button>end</button>');
    await p.locator('button').scrollIntoViewIfNeeded();
    assert.ok(await p.evaluate(() => scrollY) > 1000);
  },
  'clipboard': async ({ context, reuse, site }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: site });
    try {
      const p = await reuse('<input id=a value=copied><input id=b>');
      await p.focus('#a');
      await p.keyboard.press('ControlOrMeta+A');
      await p.keyboard.press('ControlOrMeta+C');
      await p.focus('#b');
      await p.keyboard.press('ControlOrMeta+V');
      assert.equal(await p.inputValue('#b'), 'copied');
      await p.evaluate(() => navigator.clipboard.writeText('written'));
      assert.equal(await p.evaluate(() => navigator.clipboard.readText()), 'written');
    } finally {
      await context.clearPermissions();
    }
  },
};
