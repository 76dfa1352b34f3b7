// Files of the person's machine for a page that asks for them. They are stored among the
// session's files first.
const chooser = $("chooser");
let choosing = 0; // the number of the open file chooser; 0 without one
on.chooser = choose;
function choose({ open, number, multiple }) {
  choosing = open ? number : 0;
  if (!open || !state.control) return chooser.close();
  $("chosen").multiple = multiple;
  $("chosen").value = "";
  $("uploading").textContent = multiple ? "The page asks for files of your machine." : "The page asks for a file of your machine.";
  $("give").disabled = false;
  chooser.returnValue = "";
  if (!chooser.open) chooser.showModal();
}
$("chooser-form").onsubmit = async (e) => {
  if (e.submitter?.value !== "ok") return;
  e.preventDefault();
  const [number, files] = [choosing, [...$("chosen").files]];
  if (files.length === 0) return;
  $("give").disabled = true;
  const names = [];
  try {
    for (const file of files) {
      $("uploading").textContent = `Sending ${file.name} to the session…`;
      names.push(await upload(file));
    }
  } catch (err) {
    $("uploading").textContent = `The file could not be sent: ${err.message}`;
    $("give").disabled = false;
    return;
  }
  if (number !== choosing) return; // the page has asked again
  control("files", { number, accept: true, names });
  choosing = 0;
  chooser.close();
};
chooser.onclose = () => {
  if (chooser.open) return; // the event is late
  if (choosing) control("files", { number: choosing, accept: false });
  choosing = 0;
  keys.focus();
};
