// What Chrome would draw outside the page, so that no picture shows it: the list of a select,
// and the pickers of dates, times and colours.
const [picker, choice] = ["picker", "choice"].map($);
const picking = question(picker, "pick", (chosen) => {
  const value = chosen === "clear" ? "" : choice.firstElementChild.value;
  return { accept: chosen === "clear" || chosen === "ok" && value !== "", text: value };
});
on.picker = ({ open, number, kind, label, value, min, max, step, options = [], left, x, y }) => {
  if (!open) return picking.close();
  $("label").textContent = label || (kind === "select" ? "Choose an option" : `Choose a ${kind === "datetime-local" ? "date and time" : kind}`);
  const field = kind === "select" ? list(options, Number(value)) : Object.assign(document.createElement("input"), { type: kind, min, max, step });
  if (kind !== "select") field.value = value;
  field.setAttribute("aria-labelledby", "label");
  choice.replaceChildren(field);
  $("more").textContent = left ? `${left} more options are not shown. Close this list and type the first letters of the option.` : "";
  $("clear").hidden = kind === "select" || kind === "color";
  picking.show(number);
  near(x, y);
  field.focus();
};

// list shows the options. A click or Enter chooses one.
function list(options, index) {
  const field = document.createElement("select");
  field.size = Math.max(2, Math.min(12, options.length + new Set(options.map((o) => o.group)).size));
  let group;
  for (const o of options) {
    if (o.group !== (group?.label ?? "")) group = o.group ? Object.assign(document.createElement("optgroup"), { label: o.group }) : undefined;
    const option = new Option(o.label, o.index, false, o.index === index);
    option.disabled = o.disabled;
    (group ?? field).append(option);
    if (group && !group.isConnected) field.append(group);
  }
  field.onclick = (e) => { if (e.target.localName === "option" && !e.target.disabled) picker.close("ok"); };
  field.onkeydown = (e) => { if (e.key === "Enter") { e.preventDefault(); picker.close("ok"); } };
  return field;
}

// near moves the picker to where the person clicked. On a phone it is in the middle.
function near(x, y) {
  if (innerWidth < 600) return picker.removeAttribute("style");
  const box = picture.getBoundingClientRect();
  const left = box.left + (x / shown.width) * box.width;
  const top = box.top + ((y + shown.top) / (shown.height + shown.top)) * box.height;
  picker.style.margin = "0";
  picker.style.left = `${Math.max(8, Math.min(left, innerWidth - picker.offsetWidth - 8))}px`;
  picker.style.top = `${Math.max(8, Math.min(top + 8, innerHeight - picker.offsetHeight - 8))}px`;
}
