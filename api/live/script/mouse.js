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
