// ask shows a dialog of the tab, until the person or another client has answered it, or
// another tab is shown.
on.dialog = ask;
let asked = 0; // its number; 0 without a dialog
function ask({ open, number, kind, message, default: suggested }) {
  asked = open ? number : 0;
  if (!open) return dialog.close();
  $("message").textContent = kind === "beforeunload" ? "Changes that you made may not be saved. Leave the page?" : message;
  $("program").hidden = !state.client_dialogs;
  $("answer").hidden = kind !== "prompt";
  $("answer").value = suggested;
  $("cancel").hidden = kind === "alert";
  dialog.returnValue = "";
  if (!dialog.open) dialog.showModal();
}
const dialog = $("dialog");
dialog.onclose = () => {
  if (dialog.open) return; // the event is late: the next dialog is shown already
  if (asked) control("dialog", { number: asked, accept: dialog.returnValue === "ok", text: $("answer").value });
  asked = 0;
  keys.focus();
};
