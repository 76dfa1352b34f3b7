// Shared links: others open this live view until the link expires or is revoked.
const sharePanel = $("share-panel");
const shareNote = $("share-note");

$("share").onclick = () => {
  shareNote.textContent = "";
  $("share-made").hidden = true;
  sharePanel.showModal();
  listLinks();
};

$("share-form").onsubmit = async (e) => {
  e.preventDefault();
  const json = { control: $("share-control").value === "control", expires_in_seconds: Number($("share-life").value) };
  try {
    const made = await call("POST", "../links", { json });
    $("share-address").value = made.url;
    $("share-made").hidden = false;
    shareNote.textContent = "Copy the link now. It is not shown again.";
    $("share-copy").focus();
  } catch (e) {
    shareNote.textContent = e.message;
  }
  listLinks();
};

$("share-copy").onclick = async () => {
  $("share-address").select();
  let done = true;
  try {
    await navigator.clipboard.writeText($("share-address").value);
  } catch {
    done = document.execCommand("copy"); // without https there is no clipboard
  }
  shareNote.textContent = done ? "Copied." : "Your browser did not allow it. Copy the selected link.";
};

let listings = 0; // counts the calls, so that only the answer to the newest is shown
async function listLinks() {
  const mine = ++listings;
  try {
    const { links } = await call("GET", "../links");
    if (mine !== listings) return;
    $("share-list").replaceChildren(...links.map(linkRow));
    $("share-none").hidden = links.length > 0;
  } catch (e) {
    if (mine === listings) shareNote.textContent = e.message;
  }
}

function linkRow({ link_id: id, control: withControl, expires_at: until, viewers }) {
  const kind = withControl ? "With control" : "View only";
  const revoke = document.createElement("button");
  revoke.type = "button";
  revoke.textContent = "Revoke";
  revoke.setAttribute("aria-label", `Revoke the link: ${kind}, until ${when(until)}`);
  revoke.onclick = async () => {
    try {
      await call("DELETE", `../links/${id}`);
      $("share-made").hidden = true;
      shareNote.textContent = "The link has ended, and its viewers are disconnected.";
    } catch (e) {
      shareNote.textContent = e.message;
    }
    listLinks();
  };
  return row(kind, `until ${when(until)}, ${count(viewers, "viewer")}`, revoke);
}
