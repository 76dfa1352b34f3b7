// Saves the session as the default of its user. The session ends with that, so the panel
// stays after the connection has closed.
const savePanel = $("save-panel");
let saving = false;

$("save").onclick = () => {
  showSave(`Save this session as the default of ${state.user}? The session ends.`, [], [["Save", () => save("keep")], ["Cancel"]]);
  savePanel.showModal();
};
let closable = true; // else the person has to wait or to decide: the page cannot ask again
savePanel.oncancel = (e) => { if (!closable) e.preventDefault(); };

// showSave shows a text, more lines and what the person can do. A button without an action
// closes the panel.
function showSave(text, lines, buttons) {
  $("save-text").textContent = text;
  $("save-lines").replaceChildren(...lines.map((line) => row(line, "")));
  $("save-lines").hidden = lines.length === 0;
  closable = buttons.some(([, action]) => !action);
  $("save-buttons").replaceChildren(...buttons.map(([name, action]) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = name;
    b.onclick = action ?? (() => savePanel.close());
    return b;
  }));
  $("save-buttons").firstElementChild?.focus();
}

async function save(conflict) {
  const user = state.user;
  saving = true;
  showSave("Saving…", [], []);
  try {
    showSaved(user, await call("POST", "save", { query: { default_conflict: conflict } }));
  } catch (e) {
    const answer = e.answer;
    if (answer?.code === "version_conflict" && answer.snapshot) {
      showSave(`The session has ended and is saved, but another version of the default of ${user} was saved since it began: version ${answer.default.version}. Replace it?`,
        [], [["Overwrite", () => save("overwrite")], [`Keep version ${answer.default.version}`, () => showSaved(user, answer)]]);
    } else {
      showSave(`The session is not saved yet. ${e.message}`, ["Try again: nothing that was saved is saved twice.", "If the session goes on, you can also use it further and save later."],
        [["Try again", () => save(conflict)], ["Close"]]);
      if (over || socket.readyState === WebSocket.CLOSING) connect(); // after a failed save the session goes on
    }
  } finally {
    saving = false;
  }
}

// showSaved shows the answer to a save.
function showSaved(user, { code, snapshot, default: moved, sites, login_check: check }) {
  const lines = sites.map(({ site, expected_end: end, expired, saved }) => {
    const until = expired ? "has expired" : end ? `until about ${when(end)}` : "end unknown";
    const items = saved.map(({ name, items }) => `${name.replaceAll("_", " ")} ${items}`).join(", ");
    return `${site}: ${until}${items && `; saved ${items}`}`;
  });
  if (lines.length === 0) lines.push("No login was recognised. If you did log in, start a session from the default and look.");
  if (check) lines.push(check.logged_in ? "Login check: logged in." : `Login check: not logged in. ${whyNot(check)}`);
  let text = "The session had already ended, and nothing was saved.";
  if (moved?.moved) text = `Saved as version ${moved.version} of the default of ${user}.`;
  else if (snapshot) {
    text = `Saved. The default of ${user} is version ${moved.version}: ${reasons.get(moved.reason) ?? moved.reason}.`;
    if (code || reasons.has(moved.reason)) lines.push(`The console can make what was saved the default: it is snapshot ${snapshot.id}.`);
  }
  showSave(text, lines, [["Close"]]);
}

// The reasons that are codes; see DefaultOutcome in openapi.yaml.
const reasons = new Map([
  ["login_check_failed", "the login check failed, so it was not replaced"],
  ["partial_environment", "this session has only some of its sites, so it was not replaced"],
]);

function whyNot({ error, conditions, url }) {
  const why = error ?? conditions.filter((c) => !c.held).map((c) => `${c.kind.replaceAll("_", " ")} does not hold`).join(", ");
  return sentence(url ? `${why} at ${url}` : why);
}

// A page that was opened to log in asks before it is closed unsaved.
addEventListener("beforeunload", (e) => {
  if (location.hash === "#login" && state.may_save && !over && !saving) e.preventDefault();
});
