on.state = (message) => {
  const before = shownTab();
  const viewers = state.viewers;
  state = message;
  for (const [id, may] of [["copy", state.control], ["files", state.control], ["share", state.may_share], ["save", state.may_save]]) $(id).hidden = !may;
  if (sharePanel.open && viewers !== state.viewers) listLinks();
  if (before?.id !== shownTab()?.id || before?.url !== shownTab()?.url) clearNotice();
  render();
};

const shownTab = () => state.tabs.find((t) => t.shown);

const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// render shows the state beside the picture.
function render() {
  const front = shownTab();
  document.title = `${front?.title || "Live view"} – ${state.user}`;
  role.textContent = state.control ? "You have control" : "View only";
  role.toggleAttribute("data-control", state.control);
  const until = state.link_expires_at ? [`until ${when(state.link_expires_at)}`] : [];
  who.textContent = [state.user, count(state.viewers, "viewer"), ...(state.clients ? [count(state.clients, "program")] : []), ...until].join(", ");
  $("programs").textContent = state.control && state.client_files ? "A program chooses files" : "";
  if (document.activeElement !== address) address.value = front?.url ?? "";
  for (const field of bar.elements) field.disabled = !state.control;
  tabs.replaceChildren(...state.tabs.map(tab));
  if (state.control) tabs.append(button("+", "New tab", () => control("new_tab")));
  if (!front) note.textContent = "No tab is open.";
}
