// Stores a value in the extension's storage and in its database, and returns it if both
// have it.
const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function store(mode) {
  const opening = indexedDB.open('keeper', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore('store');
  return (await done(opening)).transaction('store', mode).objectStore('store');
}

const actions = {
  keep: async ({ value }) => {
    await chrome.storage.local.set({ value });
    await done((await store('readwrite')).put(value, 'value'));
  },
  give: async () => {
    const { value } = await chrome.storage.local.get('value');
    return value === (await done((await store('readonly')).get('value'))) ? value : undefined;
  },
};

chrome.runtime.onMessage.addListener((message, _sender, answer) => {
  actions[message.do](message).then((value) => answer({ value }), (error) => answer({ error: String(error) }));
  return true; // the answer comes later
});
