on.state = (message) => {
  const before = shownTab();
  const { viewers, typing: typed } = state;
  state = message;
  for (const [id, may] of [["keyboard", state.control], ["copy", state.control], ["files", state.control], ["share", state.may_share], ["save", state.may_save]]) $(id).hidden = !may;
  if (sharePanel.open && viewers !== state.viewers) listLinks();
  if (before?.id !== shownTab()?.id || before?.url !== shownTab()?.url) clearNotice();
  if (typed !== state.typing && keys.inputMode && document.activeElement === keys) onScreen(state.typing); // a finger is used
  render();
};
let scrolledTo; // the ID of the tab to which the list was scrolled

const shownTab = () => state.tabs.find((t) => t.shown);

const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// render shows the state beside the picture.
function render() {
  const front = shownTab();
  document.title = `${front?.title || "Live view"} – ${state.user}`;
  role.textContent = state.control ? "You have control" : "View only";
  role.toggleAttribute("data-control", state.control);
  const until = state.link_expires_at ? [`until ${when(state.link_expires_at)}`] : [];
  const others = [count(state.viewers, "viewer"), ...(state.clients ? [count(state.clients, "program")] : []), ...until];
  who.replaceChildren(Object.assign(document.createElement("span"), { textContent: state.user }), `, ${others.join(", ")}`);
  who.title = who.textContent;
  $("programs").textContent = state.control && state.client_files ? "A program chooses files" : "";
  if (document.activeElement !== address) address.value = front?.url ?? "";
  for (const field of bar.elements) field.disabled = !state.control;
  const focused = [...tabs.querySelectorAll("button")].indexOf(document.activeElement);
  tabs.replaceChildren(...state.tabs.map(tab));
  if (state.control) tabs.append(button("+", "New tab", () => control("new_tab")));
  if (focused >= 0) [...tabs.querySelectorAll("button")].slice(0, focused + 1).at(-1)?.focus();
  if (scrolledTo !== front?.id) tabs.querySelector("[data-shown]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  scrolledTo = front?.id;
  if (!front) note.textContent = "No tab is open.";
}
