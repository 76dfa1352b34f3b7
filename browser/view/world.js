// What the live view needs to know of a document: which list or picker Chrome shows for it
// outside the page, and what is selected. It is evaluated in an isolated world, which
// scripts of the page cannot see. It listens to nothing, and changes nothing until the
// person has chosen. The functions are kept under a symbol, because globalThis.look would be an
// element of the page with the ID "look", also in this world.
(() => {
  const kept = Symbol.for("stasis live view");
  if (globalThis[kept]) return globalThis[kept];
  const longest = { label: 300, options: 5000, labels: 1 << 17, text: 1 << 20 }; // labels: of all options together
  const cut = (text) => String(text).slice(0, longest.label);
  const isOpen = (field) => getComputedStyle(field).appearance !== "base-select"; // the page draws that one

  // find returns the field whose list or picker Chrome shows, also in a shadow tree.
  function find() {
    let inside = document;
    for (;;) {
      const open = [...inside.querySelectorAll("select:open, input:open")].find(isOpen);
      if (open) return open;
      const focused = inside.activeElement;
      if (!focused?.shadowRoot) return undefined;
      inside = focused.shadowRoot;
    }
  }

  const labelOf = (e) => cut(e.ariaLabel ?? e.labels?.[0]?.textContent ?? "").trim();

  function describe(e) {
    if (e.localName === "input") return { kind: e.type, label: labelOf(e), value: cut(e.value), min: cut(e.min), max: cut(e.max), step: cut(e.step) };
    const options = [];
    let [left, used] = [0, 0];
    for (const o of e.options) {
      const group = o.parentElement?.localName === "optgroup" ? o.parentElement : undefined;
      if (o.hidden || group?.hidden) continue;
      if (options.length === longest.options || used >= longest.labels) {
        left++;
        continue;
      }
      const option = { index: o.index, label: cut(o.label), group: cut(group?.label ?? ""), disabled: o.disabled || !!group?.disabled };
      used += option.label.length + option.group.length;
      options.push(option);
    }
    return { kind: "select", label: e.labels?.[0]?.contains(e) ? "" : labelOf(e), value: String(e.selectedIndex), options, left };
  }

  // focused returns the element with the focus, also in a shadow tree. Only the document of the
  // innermost frame has one that is no frame.
  function focused() {
    let e = document.hasFocus() ? document.activeElement : null;
    while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    return e;
  }

  // takesText reports whether typing into an element writes text.
  function takesText(e) {
    if (e?.localName === "input") return !e.readOnly && !e.disabled && /^(text|search|url|tel|email|password|number)$/.test(e.type);
    return !!e && (e.isContentEditable || e.localName === "textarea" && !e.readOnly && !e.disabled);
  }

  let looked; // what the last look found

  // look returns the open list or picker, {typing: true} if the focus is in a field for text,
  // or null. If it is the picker that the daemon knows by this id, the rest is left out.
  function look(known) {
    const field = find();
    if (!field) return takesText(focused()) ? { typing: true } : null;
    if (looked?.field === field && looked.id === known) return { id: known };
    looked = { field, id: (looked?.id ?? 0) + 1 };
    return { id: looked.id, ...describe(field) };
  }

  // choose sets the field with this id as a person would.
  function choose(id, value) {
    const { field, id: last } = looked ?? {};
    if (id !== last || !field.isConnected) return;
    const part = field.localName === "select" ? "selectedIndex" : "value";
    const before = field[part];
    field[part] = value;
    if (field[part] === before) return;
    field.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // selected returns the selected text if this document has the focus, or null.
  function selected() {
    const e = focused();
    if (!document.hasFocus() || ["iframe", "frame"].includes(e?.localName)) return null;
    const inField = e?.localName === "textarea" || e?.localName === "input" && e.type !== "password" && e.selectionStart !== null;
    const text = inField ? e.value.slice(e.selectionStart, e.selectionEnd) : String(getSelection());
    return { text: text.slice(0, longest.text), left: Math.max(0, text.length - longest.text) };
  }

  return globalThis[kept] = { look, choose, selected };
})()
