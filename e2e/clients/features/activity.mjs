// Measures whether a page runs at full speed, for both libraries.

/** activity counts timers and frames of a page for half a second of its own clock. */
const activity = () => new Promise((resolve) => {
  const began = performance.now();
  let frames = 0, timers = 0;
  const frame = () => { frames++; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  const timer = setInterval(() => {
    timers++;
    if (performance.now() - began < 500) return;
    clearInterval(timer);
    resolve({ frames, timers, hidden: document.hidden });
  }, 10);
});

/** measure returns the activity of a page, measured up to ten times until it is at full speed. A throttled page never is. */
export async function measure(page) {
  let seen;
  for (let tries = 0; tries < 10; tries++) {
    seen = await page.evaluate(activity);
    if (seen.hidden || seen.timers > 10 && seen.frames > 5) break;
  }
  return seen;
}
