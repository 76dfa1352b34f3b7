function tab({ id, title, url, shown: isShown }) {
  const box = document.createElement("div");
  box.toggleAttribute("data-shown", isShown);
  const name = button(title || url, url, () => control("tab", { id }));
  name.className = "title";
  name.removeAttribute("aria-label"); // its text names it
  if (isShown) name.ariaCurrent = "true";
  box.append(name);
  if (state.control) box.append(button("×", `Close ${title || url}`, () => control("close_tab", { id })));
  return box;
}

function button(text, label, onclick) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = text;
  b.title = label;
  b.setAttribute("aria-label", label);
  b.disabled = !state.control;
  b.onclick = onclick;
  return b;
}

for (const type of ["back", "forward", "reload"]) $(type).onclick = () => control(type);
/** schemeOf is the scheme of an address that has none. A server on the daemon's machine rarely has a certificate. */
const schemeOf = (typed) => (/^(localhost|127\.[0-9.]+|\[::1\])(:|\/|$)/i.test(typed) ? "http://" : "https://");

bar.onsubmit = (e) => {
  e.preventDefault();
  clearNotice();
  const typed = address.value.trim();
  control("navigate", { url: /^[a-z][a-z0-9+.-]*:/i.test(typed) && !/^[^/:]+:\d/.test(typed) ? typed : schemeOf(typed) + typed });
  keys.focus();
};
