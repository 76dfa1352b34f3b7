// A notice is shown for a while, or until the tab is at another address.
on.notice = ({ text }) => notice(text);
let noticed; // its timer; undefined without a notice
function notice(text) {
  clearNotice();
  note.textContent = text;
  noticed = setTimeout(clearNotice, 8000);
}
function clearNotice() {
  if (!noticed) return;
  clearTimeout(noticed);
  noticed = undefined;
  note.textContent = "";
}
