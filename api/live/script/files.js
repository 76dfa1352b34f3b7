// The files of the session: downloads of its pages, and files that its pages may upload.
const filesPanel = $("files-panel");
const filesNote = $("files-note");

// The daemon sends files when the session has a new file.
on.files = () => {
  if (filesPanel.open) listFiles();
  else $("files").textContent = "Files (new)";
};

$("files").onclick = () => {
  $("files").textContent = "Files";
  filesNote.textContent = "";
  filesPanel.showModal();
  listFiles();
};

async function listFiles() {
  try {
    const { files } = await call("GET", "files");
    $("files-list").replaceChildren(...files.map(fileRow));
    $("files-none").hidden = files.length > 0;
  } catch (e) {
    filesNote.textContent = e.message;
  }
}

function fileRow({ name, size_bytes: size }) {
  const link = document.createElement("a");
  link.textContent = name;
  link.download = name;
  link.href = route(`files/${encodeURIComponent(name)}`);
  return row(link, bytes(size));
}

function bytes(n) {
  const units = ["bytes", "kB", "MB", "GB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i++) n /= 1000;
  return `${i > 0 && n < 10 ? n.toFixed(1) : Math.round(n)} ${n === 1 && i === 0 ? "byte" : units[i]}`;
}

// upload stores a file among the session's files and returns its name there, which has a
// number if the session had another file of that name.
async function upload(file) {
  return (await call("POST", "files", { query: { name: file.name }, file })).name;
}

$("files-upload").onclick = () => $("files-chosen").click();
$("files-chosen").onchange = async () => {
  const chosen = [...$("files-chosen").files];
  $("files-chosen").value = ""; // so that the same file can be chosen again
  try {
    for (const file of chosen) {
      filesNote.textContent = `Uploading ${file.name}…`;
      const name = await upload(file);
      filesNote.textContent = name === file.name ? `Uploaded ${name}.` : `Uploaded ${file.name} as ${name}.`;
    }
  } catch (e) {
    filesNote.textContent = `Not uploaded: ${e.message}`;
  }
  listFiles();
};
