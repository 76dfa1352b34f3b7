// What the page copies is put on the person's clipboard, if their browser allows it.
const copied = $("copied");
on.copied = async ({ text, left }) => {
  if (!text) return notice("Nothing is selected in the page.");
  try {
    await navigator.clipboard.writeText(text);
    notice(left ? `Copied the first ${text.length} characters of ${text.length + left}.` : "Copied.");
  } catch { // without https, or without a recent click
    $("copy-text").value = text;
    if (!copied.open) copied.showModal();
    $("copy-text").select();
  }
};
copied.onclose = () => keys.focus();
$("copy").onclick = () => control("edit", { event: "copy" });
