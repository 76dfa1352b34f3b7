// Every place where state is stored: how to set it and how to read it back. A getter
// returns null if there is nothing, and the value only if it is complete.
const year = 365 * 24 * 60 * 60;

const cookie = (name) =>
  document.cookie.split('; ').find((c) => c.startsWith(`${name}=`))?.slice(name.length + 1) ?? null;

// settled resolves with the result of an IndexedDB request.
const settled = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

// store runs use on the object store and resolves once the transaction is complete.
async function store(mode, use) {
  const open = indexedDB.open('probe', 3);
  open.onupgradeneeded = () =>
    open.result.createObjectStore('kinds', { keyPath: 'id' }).createIndex('by_tag', 'tag');
  const db = await settled(open);
  try {
    const tx = db.transaction('kinds', mode, { durability: 'strict' });
    const complete = new Promise((resolve, reject) => {
      tx.oncomplete = resolve;
      tx.onabort = () => reject(tx.error);
    });
    const result = await settled(use(tx.objectStore('kinds')));
    await complete;
    return result;
  } finally {
    db.close();
  }
}
const put = (record) => store('readwrite', (s) => s.put(record));
const take = (id) => store('readonly', (s) => s.get(id));

const kinds = {
  cookie_session: {
    set: (v) => { document.cookie = `session=${v}; path=/`; },
    get: () => cookie('session'),
  },
  cookie_persistent: {
    set: (v) => { document.cookie = `persistent=${v}; path=/; max-age=${year}`; },
    get: () => cookie('persistent'),
  },
  // The server sets these two and reports them; scripts cannot see them.
  cookie_httponly: { get: (sent) => sent.httponly ?? null },
  cookie_partitioned: { get: (sent) => sent.partitioned ?? null },
  local_storage: {
    set: (v) => localStorage.setItem('probe', v),
    get: () => localStorage.getItem('probe'),
  },
  session_storage: {
    set: (v) => sessionStorage.setItem('probe', v),
    get: () => sessionStorage.getItem('probe'),
  },
  window_name: {
    set: (v) => { window.name = v; },
    get: () => window.name || null,
  },
  idb_value: {
    set: (v) => put({ id: 'value', value: v }),
    get: async () => (await take('value'))?.value ?? null,
  },
  idb_index: {
    set: (v) => put({ id: 'index', tag: 'tagged', value: v }),
    get: async () => (await store('readonly', (s) => s.index('by_tag').get('tagged')))?.value ?? null,
  },
  idb_map_date: {
    set: (v) => put({ id: 'map_date', map: new Map([['value', v]]), date: new Date(1e12) }),
    get: async () => {
      const r = await take('map_date');
      return r?.map instanceof Map && r.date instanceof Date && +r.date === 1e12 ? r.map.get('value') : null;
    },
  },
  idb_blob: {
    set: (v) => put({ id: 'blob', blob: new Blob([v], { type: 'text/plain' }) }),
    get: async () => {
      const r = await take('blob');
      return r?.blob instanceof Blob && r.blob.type === 'text/plain' ? r.blob.text() : null;
    },
  },
  idb_crypto_key: {
    set: async (v) => {
      const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
      const iv = crypto.getRandomValues(new Uint8Array(12));
      const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, key, new TextEncoder().encode(v));
      await put({ id: 'crypto_key', key, iv, sealed });
    },
    get: async () => {
      const r = await take('crypto_key');
      if (!r || r.key.extractable) return null;
      const open = await crypto.subtle.decrypt({ name: 'AES-GCM', iv: r.iv }, r.key, r.sealed);
      return new TextDecoder().decode(open);
    },
  },
  cache: {
    set: async (v) => (await caches.open('probe')).put('/cached', new Response(v)),
    get: async () => (await caches.match('/cached'))?.text() ?? null,
  },
  service_worker: {
    set: async (v) => {
      const taken = new Promise((resolve) => {
        navigator.serviceWorker.addEventListener('controllerchange', resolve, { once: true });
      });
      const script = `/worker.js?v=${encodeURIComponent(v)}`;
      if (navigator.serviceWorker.controller?.scriptURL.endsWith(script)) return;
      await navigator.serviceWorker.register(script);
      await taken;
    },
    get: async () => {
      if (!navigator.serviceWorker.controller) return null;
      const answer = await fetch('/from-worker');
      return answer.ok ? answer.text() : null;
    },
  },
  opfs: {
    set: async (v) => {
      const root = await navigator.storage.getDirectory();
      const file = await (await root.getFileHandle('probe.txt', { create: true })).createWritable();
      await file.write(v);
      await file.close();
    },
    get: async () => {
      const root = await navigator.storage.getDirectory();
      try {
        return await (await (await root.getFileHandle('probe.txt')).getFile()).text();
      } catch (err) {
        if (err.name === 'NotFoundError') return null;
        throw err;
      }
    },
  },
};

// done reports the end: to a test by the title, to a parent frame by a message.
function done(title, state = null) {
  document.title = title;
  if (parent !== window) parent.postMessage({ done: title, state }, '*');
}

function failed(err) {
  window.__error = String(err);
  done(`failed: ${err}`);
}

// inFrame opens url in a frame and resolves with the state that it reports.
function inFrame(url) {
  return new Promise((resolve, reject) => {
    const frame = document.createElement('iframe');
    addEventListener('message', (e) => {
      if (e.source !== frame.contentWindow) return;
      if (e.data.done.startsWith('failed')) reject(new Error(`frame ${e.data.done}`));
      else resolve(e.data.state);
    });
    frame.src = url;
    document.documentElement.append(frame);
  });
}
