on.state = (message) => {
  const before = shownTab();
  state = message;
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
  who.textContent = [state.user, count(state.viewers, "viewer"), ...(state.clients ? [count(state.clients, "program")] : [])].join(", ");
  $("programs").textContent = state.control && state.client_files ? "A program chooses files" : "";
  if (document.activeElement !== address) address.value = front?.url ?? "";
  for (const field of bar.elements) field.disabled = !state.control;
  tabs.replaceChildren(...state.tabs.map(tab));
  if (state.control) tabs.append(button("+", "New tab", () => control("new_tab")));
  if (!front) note.textContent = "No tab is open.";
}
