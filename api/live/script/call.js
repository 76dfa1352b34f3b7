// call asks the daemon for something over HTTP, with the page's ticket. It returns the answer,
// or throws an error in words.
async function call(method, path, { query = {}, json, file } = {}) {
  const to = new URL(route(path));
  for (const [name, value] of Object.entries(query)) to.searchParams.set(name, value);
  const type = file ? "application/octet-stream" : "application/json";
  let answer, result;
  try {
    answer = await fetch(to, { method, body: file ?? (json && JSON.stringify(json)), headers: { "Content-Type": type } });
    result = answer.status === 204 ? undefined : await answer.json();
  } catch {
    throw new Error("Stasis cannot be reached.");
  }
  if (answer.ok) return result;
  throw Object.assign(new Error(answer.status === 401 ? gone : sentence(result.message)), { answer: result });
}

// row returns an item of a list in a panel: a text, or a link, and what can be done with it.
function row(what, about, ...actions) {
  const item = document.createElement("li");
  const detail = document.createElement("span");
  detail.textContent = about;
  item.append(what, detail, ...actions);
  return item;
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

// when returns a time for people, without the date if it is today.
function when(time) {
  const at = new Date(time);
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString([], today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}
