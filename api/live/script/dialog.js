// A dialog of the tab.
const dialog = $("dialog");
const asking = question(dialog, "dialog", (chosen) => ({ accept: chosen === "ok", text: $("answer").value }));
on.dialog = ({ open, number, kind, message, default: suggested }) => {
  if (!open) return asking.close();
  $("message").textContent = kind === "beforeunload" ? "Changes that you made may not be saved. Leave the page?" : message;
  $("program").hidden = !state.client_dialogs;
  $("answer").hidden = kind !== "prompt";
  $("answer").value = suggested;
  $("cancel").hidden = kind === "alert";
  asking.show(number);
};
