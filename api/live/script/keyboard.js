// Keys go to a text field, so that compositions, emoji pickers and on-screen keyboards
// work. Keys that a composition takes have no event of their own: its text is sent.
function key(e, event) {
  if (e.isComposing || e.keyCode === 229) return;
  if ((e.ctrlKey || e.metaKey) && e.code === "KeyV") return; // the paste event has the text
  if (e.key === "F6") { // the only way out with the keyboard alone: the page may need Tab and Escape
    e.preventDefault();
    if (event === "down") address.focus();
    return;
  }
  const edit = (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && { KeyC: "copy", KeyX: "cut", KeyA: "select_all" }[e.code];
  if (edit) {
    e.preventDefault();
    if (event === "down") control("edit", { event: edit });
    return;
  }
  e.preventDefault();
  const types = e.key.length === 1 || [...e.key].length === 1;
  const text = e.key === "Enter" ? "\r" : types && !(e.ctrlKey && !e.getModifierState("AltGraph")) && !e.metaKey ? e.key : "";
  control("key", { event, key: e.key, code: e.code, key_code: e.keyCode, location: e.location, repeat: e.repeat, text: event === "down" ? text : "", modifiers: modifiers(e) });
}
keys.onkeydown = (e) => key(e, "down");
keys.onkeyup = (e) => key(e, "up");

// On-screen keyboards report a deletion only if the field has something to delete.
const filler = "\u200b";
const refill = () => { keys.value = filler; };
refill();

// type presses a key that an on-screen keyboard reports only as a change of the field.
function type(name, keyCode, text = "") {
  for (const event of ["down", "up"]) control("key", { event, key: name, code: name, key_code: keyCode, text: event === "down" ? text : "" });
}
keys.oninput = (e) => {
  if (e.isComposing || e.inputType.includes("Composition")) return;
  const text = keys.value.replace(filler, "");
  refill();
  if (e.inputType === "insertLineBreak") type("Enter", 13, "\r");
  else if (e.inputType.startsWith("delete")) type("Backspace", 8);
  else if (text) control("text", { text });
};
// No element has handler properties for compositions.
keys.addEventListener("compositionupdate", (e) => control("compose", { text: e.data }));
keys.addEventListener("compositionend", (e) => {
  if (e.data) control("text", { text: e.data });
  refill();
});
keys.onpaste = (e) => {
  e.preventDefault();
  const text = e.clipboardData.getData("text/plain");
  if (text) control("text", { text });
};
