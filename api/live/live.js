
"use strict";
const picture = document.getElementById("picture");
const note = document.getElementById("note");
const over = new Set([401, 403, 404, 409]); // the ticket is not valid any more

async function refresh() {
  let pause = 1000;
  try {
    const answer = await fetch("live.jpg" + location.search, { cache: "no-store", referrerPolicy: "no-referrer" });
    if (over.has(answer.status)) {
      note.textContent = "The session has ended, or this link is no longer valid.";
      return;
    }
    if (!answer.ok) throw new Error("status " + answer.status);
    const last = picture.src;
    picture.src = URL.createObjectURL(await answer.blob());
    picture.hidden = false;
    if (last) URL.revokeObjectURL(last);
    note.textContent = "";
  } catch {
    note.textContent = "No picture at the moment; trying again.";
    pause = 3000;
  }
  setTimeout(refresh, pause);
}
refresh();
