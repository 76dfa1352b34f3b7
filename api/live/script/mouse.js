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
function turn(e, dx, dy, at = place(e)) {
  if (!moved && !turned) requestAnimationFrame(flush);
  turned = { ...at, dx: dx + (turned?.dx ?? 0), dy: dy + (turned?.dy ?? 0), modifiers: modifiers(e) };
}
function press(e, event, button, buttons, clicks) {
  flush();
  control("mouse", { event, ...place(e), button, buttons, clicks, modifiers: modifiers(e) });
}

let last = { at: 0, count: 0 };
// clicks returns how many clicks in a row this is, as in MouseEvent.detail.
function clicks(e, near = 5) {
  const again = e.timeStamp - last.at < 500 && e.button === last.button && Math.hypot(e.clientX - last.x, e.clientY - last.y) < near;
  last = { at: e.timeStamp, x: e.clientX, y: e.clientY, button: e.button, count: again ? last.count + 1 : 1 };
  return last.count;
}
picture.onpointerdown = (e) => {
  if (e.pointerType === "touch") return fingerDown(e);
  if (!e.isPrimary) return;
  e.preventDefault();
  keys.focus({ preventScroll: true });
  picture.setPointerCapture(e.pointerId);
  press(e, "down", names[e.button], e.buttons, clicks(e));
};
picture.onpointermove = (e) => (e.pointerType === "touch" ? fingerMove(e) : move(e));
picture.onpointerup = (e) => (e.pointerType === "touch" ? fingerUp(e) : press(e, "up", names[e.button], e.buttons, last.count));
picture.oncontextmenu = (e) => e.preventDefault();
picture.addEventListener("wheel", (e) => {
  e.preventDefault();
  const unit = [1, 40, shown.height][e.deltaMode];
  turn(e, e.deltaX * unit, e.deltaY * unit);
}, { passive: false });
