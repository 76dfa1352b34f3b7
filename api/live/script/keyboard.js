// Keys go to a text field, so that compositions, emoji pickers and on-screen keyboards
// work. Keys that a composition takes have no event of their own: its text is sent.
function key(e, event) {
  if (e.isComposing || e.keyCode === 229) return;
  if ((e.ctrlKey || e.metaKey) && e.code === "KeyV") return; // the paste event has the text
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
keys.oninput = (e) => {
  if (e.isComposing) return;
  if (e.inputType === "deleteContentBackward") {
    for (const event of ["down", "up"]) control("key", { event, key: "Backspace", code: "Backspace", key_code: 8 });
  } else if (keys.value) {
    control("text", { text: keys.value });
  }
  keys.value = "";
};
keys.oncompositionend = () => {
  if (keys.value) control("text", { text: keys.value });
  keys.value = "";
};
keys.onpaste = (e) => {
  e.preventDefault();
  const text = e.clipboardData.getData("text/plain");
  if (text) control("text", { text });
};
