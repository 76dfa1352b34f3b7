// Files of the person's machine for a page that asks for them. They are stored among the
// session's files first.
const chooser = $("chooser");
const choosing = question(chooser, "files", () => ({ accept: false }));
on.chooser = ({ open, number, multiple }) => {
  if (!open) return choosing.close();
  $("chosen").multiple = multiple;
  $("chosen").value = "";
  $("uploading").textContent = multiple ? "The page asks for files of your machine." : "The page asks for a file of your machine.";
  $("give").disabled = false;
  choosing.show(number);
};
$("chooser-form").onsubmit = async (e) => {
  if (e.submitter?.value !== "ok") return;
  e.preventDefault();
  const [number, files] = [choosing.number, [...$("chosen").files]];
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
  if (number !== choosing.number) return; // the page has asked again
  control("files", { number, accept: true, names });
  choosing.close();
};
