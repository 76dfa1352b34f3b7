// A finger taps, or drags the page like a wheel: the session has a mouse. After a long press it
// drags like the mouse, for sliders and for text. Two fingers zoom the live view.
let finger; // what the finger does; undefined without one
const longPress = 500; // milliseconds
let gliding = 0; // counts the fingers, so that a new one stops the page

function fingerDown(e) {
  fingerGone();
  gliding++;
  if (!e.isPrimary) return;
  const hold = () => {
    finger.holds = true;
    navigator.vibrate?.(10);
    press(e, "down", "left", 1, 1);
  };
  finger = { from: place(e), x: e.clientX, y: e.clientY, at: e.timeStamp, vx: 0, vy: 0, hold, timer: setTimeout(hold, longPress) };
}

// holdIfDue begins a long press whose timer is late. Events come before timers on a busy phone.
function holdIfDue(at) {
  if (finger.drags || finger.holds || at - finger.at < longPress) return;
  clearTimeout(finger.timer);
  finger.hold();
}

function fingerMove(e) {
  if (!finger || !e.isPrimary) return;
  const [first = e] = e.getCoalescedEvents?.() ?? []; // a late page gets several moves as one; only https has them
  holdIfDue(first.timeStamp);
  if (finger.holds) {
    Object.assign(finger, { x: e.clientX, y: e.clientY });
    return move(e, { buttons: 1 });
  }
  const zoom = shown.width / picture.getBoundingClientRect().width;
  const [dx, dy] = [(finger.x - e.clientX) * zoom, (finger.y - e.clientY) * zoom];
  if (!finger.drags && Math.hypot(dx, dy) < 10 * zoom) return;
  clearTimeout(finger.timer);
  const took = Math.max(1, e.timeStamp - finger.at);
  finger = { ...finger, x: e.clientX, y: e.clientY, at: e.timeStamp, drags: true, vx: dx / took, vy: dy / took };
  turn(e, dx, dy, finger.from); // what is under the first touch scrolls, wherever the finger goes
}

function fingerUp(e) {
  if (!finger || !e.isPrimary) return;
  holdIfDue(e.timeStamp);
  if (finger.drags && e.timeStamp - finger.at < 50) glide(e, finger);
  if (!finger.drags && !finger.holds) tap(e);
  fingerGone();
}
picture.onmousedown = (e) => e.preventDefault(); // it follows a tap, and would take the focus from the keys
picture.onpointercancel = () => fingerGone();

// fingerGone ends what the finger did, if it did anything.
function fingerGone() {
  clearTimeout(finger?.timer);
  if (finger?.holds) press({ clientX: finger.x, clientY: finger.y }, "up", "left", 0, 1);
  finger = undefined;
}

function tap(e) {
  onScreen(state.typing);
  const count = clicks(e, 30);
  move(e, { buttons: 0 });
  press(e, "down", "left", 1, count);
  press(e, "up", "left", 0, count);
}

// glide lets the page scroll on and slow down after a quick drag, as phones do.
function glide(e, { from, vx, vy }) {
  const mine = gliding;
  let last = performance.now();
  const step = (now) => {
    if (mine !== gliding || Math.hypot(vx, vy) < 0.05) return;
    turn(e, vx * (now - last), vy * (now - last), from);
    const slower = 0.997 ** (now - last);
    [last, vx, vy] = [now, vx * slower, vy * slower];
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

// onScreen opens or closes the on-screen keyboard. It opens when the focus comes to the field.
function onScreen(open) {
  keys.inputMode = open ? "text" : "none";
  keys.blur();
  keys.focus({ preventScroll: true });
}
$("keyboard").onclick = () => onScreen(true);
