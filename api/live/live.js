"use strict";
const $ = (id) => document.getElementById(id);
const [picture, keys, note, role, who, address, tabs, bar] = ["picture", "keys", "note", "role", "who", "address", "tabs", "bar"].map($);
const paper = picture.getContext("2d");
const headerSize = 20; // of a picture's message: see package browser/view
const ended = new Map([[4001, "The session has ended."], [4003, "The API key of this link was deleted."]]);
const unreachable = "Stasis cannot be reached, or the session has too many viewers. Connecting again…";

let socket;
let state = { control: false, tabs: [] };
let shown = { width: 1, height: 1, top: 0 }; // what the picture shows, in CSS pixels of the tab

function connect() {
  socket = new WebSocket(location.href.replace(/^http/, "ws").replace(/\/live(\?|$)/, "/live/socket$1"));
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => (typeof data === "string" ? told(JSON.parse(data)) : draw(data));
  let opened = false;
  socket.onopen = () => { opened = true; };
  socket.onclose = ({ code }) => {
    picture.classList.add("off");
    ask({ open: false });
    clearNotice();
    state = { ...state, control: false };
    if (state.type) render();
    role.textContent = ended.has(code) ? "Ended" : "Connecting…";
    note.textContent = ended.get(code) ?? (opened ? "The connection was lost. Connecting again…" : unreachable);
    if (!ended.has(code)) setTimeout(connect, 2000);
  };
}

function send(type, fields) {
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type, ...fields }));
}

// control sends input, which only a viewer with control may give.
function control(type, fields) {
  if (state.control) send(type, fields);
}

// A notice is shown for a while, or until the tab is at another address.
let noticed; // its timer; undefined without a notice
function notice(text) {
  clearNotice();
  note.textContent = text;
  noticed = setTimeout(clearNotice, 8000);
}
function clearNotice() {
  if (!noticed) return;
  clearTimeout(noticed);
  noticed = undefined;
  note.textContent = "";
}

let drawing = Promise.resolve();
function draw(data) {
  drawing = drawing.then(async () => {
    const header = new DataView(data, 0, headerSize);
    const frame = Number(header.getBigInt64(0));
    try {
      const image = await createImageBitmap(new Blob([new Uint8Array(data, headerSize)], { type: "image/jpeg" }));
      if (socket.readyState !== WebSocket.OPEN) return; // the page says so, and must not look alive
      shown = { width: header.getFloat32(8), height: header.getFloat32(12), top: header.getFloat32(16) };
      if (picture.width !== image.width || picture.height !== image.height) {
        picture.width = image.width;
        picture.height = image.height;
      }
      // Over a slow connection the picture has fewer pixels than the tab.
      picture.style.setProperty("--width", `${shown.width}px`);
      picture.style.setProperty("--ratio", image.width / image.height);
      paper.drawImage(image, 0, 0);
      image.close();
      picture.classList.remove("off");
      if (!noticed) note.textContent = "";
    } finally {
      send("drawn", { frame });
    }
  });
}

function told(message) {
  if (message.type === "dialog") {
    ask(message);
    return;
  }
  if (message.type === "notice") {
    notice(message.text);
    return;
  }
  const before = shownTab();
  state = message;
  if (before?.id !== shownTab()?.id || before?.url !== shownTab()?.url) clearNotice();
  render();
}

const shownTab = () => state.tabs.find((t) => t.shown);

// render shows the state beside the picture.
function render() {
  const front = shownTab();
  document.title = `${front?.title || "Live view"} – ${state.user}`;
  role.textContent = state.control ? "You have control" : "View only";
  role.toggleAttribute("data-control", state.control);
  who.textContent = `${state.user}, ${state.viewers === 1 ? "1 viewer" : `${state.viewers} viewers`}`;
  if (document.activeElement !== address) address.value = front?.url ?? "";
  for (const field of bar.elements) field.disabled = !state.control;
  tabs.replaceChildren(...state.tabs.map(tab));
  if (state.control) tabs.append(button("+", "New tab", () => control("new_tab")));
  if (!front) note.textContent = "No tab is open.";
}

// ask shows a dialog of the tab, until the person or another client has answered it, or
// another tab is shown.
let asked = 0; // its number; 0 without a dialog
function ask({ open, number, kind, message, default: suggested }) {
  asked = open ? number : 0;
  if (!open) return dialog.close();
  $("message").textContent = kind === "beforeunload" ? "Changes that you made may not be saved. Leave the page?" : message;
  $("answer").hidden = kind !== "prompt";
  $("answer").value = suggested;
  $("cancel").hidden = kind === "alert";
  dialog.returnValue = "";
  if (!dialog.open) dialog.showModal();
}
const dialog = $("dialog");
dialog.onclose = () => {
  if (dialog.open) return; // the event is late: the next dialog is shown already
  if (asked) control("dialog", { number: asked, accept: dialog.returnValue === "ok", text: $("answer").value });
  asked = 0;
  keys.focus();
};

function tab({ id, title, url, shown: isShown }) {
  const box = document.createElement("div");
  box.toggleAttribute("data-shown", isShown);
  const name = button(title || url, url, () => control("tab", { id }));
  name.className = "title";
  box.append(name);
  if (state.control) box.append(button("×", `Close ${title || url}`, () => control("close_tab", { id })));
  return box;
}

function button(text, label, onclick) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = text;
  b.title = label;
  b.setAttribute("aria-label", label);
  b.disabled = !state.control;
  b.onclick = onclick;
  return b;
}

for (const type of ["back", "forward", "reload"]) $(type).onclick = () => control(type);
bar.onsubmit = (e) => {
  e.preventDefault();
  clearNotice();
  const typed = address.value.trim();
  control("navigate", { url: /^[a-z][a-z0-9+.-]*:/i.test(typed) && !/^[^/:]+:\d/.test(typed) ? typed : `https://${typed}` });
  keys.focus();
};

const modifiers = (e) => (e.altKey ? 1 : 0) | (e.ctrlKey ? 2 : 0) | (e.metaKey ? 4 : 0) | (e.shiftKey ? 8 : 0);
const names = ["left", "middle", "right", "back", "forward"];

// place returns where an event is in the tab.
function place(e) {
  const box = picture.getBoundingClientRect();
  return {
    x: ((e.clientX - box.left) / box.width) * shown.width,
    y: ((e.clientY - box.top) / box.height) * (shown.height + shown.top) - shown.top,
  };
}

// Moves and turns of the wheel wait for the next frame of this page, so that they are sent
// at most that often.
let moved, turned;
function flush() {
  if (moved) control("mouse", moved);
  if (turned) control("wheel", turned);
  moved = turned = undefined;
}
function move(e, fields) {
  if (!moved && !turned) requestAnimationFrame(flush);
  moved = { event: "move", ...place(e), button: "", buttons: e.buttons, modifiers: modifiers(e), ...fields };
}
function turn(e, dx, dy) {
  if (!moved && !turned) requestAnimationFrame(flush);
  turned = { ...place(e), dx: dx + (turned?.dx ?? 0), dy: dy + (turned?.dy ?? 0), modifiers: modifiers(e) };
}
function press(e, event, button, buttons, clicks) {
  flush();
  control("mouse", { event, ...place(e), button, buttons, clicks, modifiers: modifiers(e) });
}

let last = { at: 0, count: 0 };
let finger; // a finger taps, or drags the page like a wheel; the session has a mouse
picture.onpointerdown = (e) => {
  if (!e.isPrimary) return;
  if (e.pointerType === "touch") {
    finger = { x: e.clientX, y: e.clientY, drags: false };
    return;
  }
  e.preventDefault();
  keys.focus({ preventScroll: true });
  picture.setPointerCapture(e.pointerId);
  const again = e.timeStamp - last.at < 500 && e.button === last.button && Math.hypot(e.clientX - last.x, e.clientY - last.y) < 5;
  last = { at: e.timeStamp, x: e.clientX, y: e.clientY, button: e.button, count: again ? last.count + 1 : 1 };
  press(e, "down", names[e.button], e.buttons, last.count);
};
picture.onpointermove = (e) => {
  if (e.pointerType !== "touch") return move(e);
  if (!finger || !e.isPrimary) return;
  const [dx, dy] = [finger.x - e.clientX, finger.y - e.clientY];
  if (!finger.drags && Math.hypot(dx, dy) < 10) return;
  const zoom = shown.width / picture.getBoundingClientRect().width;
  turn(e, dx * zoom, dy * zoom);
  finger = { x: e.clientX, y: e.clientY, drags: true };
};
picture.onpointerup = (e) => {
  if (e.pointerType !== "touch") return press(e, "up", names[e.button], e.buttons, last.count);
  if (finger && !finger.drags && e.isPrimary) {
    keys.focus({ preventScroll: true });
    move(e, { buttons: 0 });
    press(e, "down", "left", 1, 1);
    press(e, "up", "left", 0, 1);
  }
  finger = undefined;
};
picture.onpointercancel = () => { finger = undefined; };
picture.oncontextmenu = (e) => e.preventDefault();
picture.addEventListener("wheel", (e) => {
  e.preventDefault();
  const unit = [1, 40, shown.height][e.deltaMode];
  turn(e, e.deltaX * unit, e.deltaY * unit);
}, { passive: false });
// Keys go to a text field, so that compositions, emoji pickers and on-screen keyboards
// work. Keys that a composition takes have no event of their own: its text is sent.
function key(e, event) {
  if (e.isComposing || e.keyCode === 229) return;
  if ((e.ctrlKey || e.metaKey) && e.code === "KeyV") return; // the paste event has the text
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

connect();
