// Reads and writes the IndexedDB databases of an origin in the format of
// Playwright's storageState (packages/injected/src/storageScript.ts): plain
// JSON values unchanged, others encoded like Playwright's arguments.
({
  arrays: {
    i8: Int8Array, ui8: Uint8Array, ui8c: Uint8ClampedArray, i16: Int16Array, ui16: Uint16Array, i32: Int32Array,
    ui32: Uint32Array, f32: Float32Array, f64: Float64Array, bi64: BigInt64Array, bui64: BigUint64Array,
  },

  settled: (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error('blocked'));
  }),

  plain(value, depth = 0) {
    if (depth > 100) return false; // the value may contain itself
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
    if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0);
    if (Array.isArray(value)) return Array.from(value).every((v) => this.plain(v, depth + 1));
    return value?.constructor === Object && Object.values(value).every((v) => this.plain(v, depth + 1));
  },

  // encode throws for a value that JSON cannot express: a Blob, a key, a file handle.
  encode(value, seen = new Map()) {
    const known = seen.get(value);
    if (known) return { ref: known };
    const note = () => { seen.set(value, seen.size + 1); return seen.size; };
    switch (true) {
      case value === undefined: return { v: 'undefined' };
      case value === null: return { v: 'null' };
      case Number.isNaN(value) || value === Infinity || value === -Infinity: return { v: String(value) };
      case Object.is(value, -0): return { v: '-0' };
      case typeof value === 'bigint': return { bi: String(value) };
      case typeof value !== 'object': return value;
      case value instanceof Date: return { d: value.toJSON() };
      case value instanceof RegExp: return { r: { p: value.source, f: value.flags } };
      case value instanceof Error: return { e: { n: value.name, m: value.message, s: value.stack ?? '' } };
      case value instanceof ArrayBuffer: return { ab: { b: new Uint8Array(value).toBase64() } };
      case value instanceof Map: {
        const id = note();
        return { m: [...value].map(([k, v]) => ({ k: this.encode(k, seen), v: this.encode(v, seen) })), id };
      }
      case value instanceof Set: {
        const id = note();
        return { s: [...value].map((v) => this.encode(v, seen)), id };
      }
      case Array.isArray(value): {
        const id = note();
        return { a: Array.from(value, (v) => this.encode(v, seen)), id };
      }
      case value.constructor === Object: {
        const id = note();
        return { o: Object.keys(value).map((k) => ({ k, v: this.encode(value[k], seen) })), id };
      }
    }
    for (const [k, type] of Object.entries(this.arrays)) {
      if (value instanceof type) {
        return { ta: { b: new Uint8Array(value.buffer, value.byteOffset, value.byteLength).toBase64(), k } };
      }
    }
    throw new TypeError('not portable');
  },

  decode(value, refs = new Map()) {
    if (typeof value !== 'object' || value === null) return value;
    const special = { null: null, NaN, Infinity, '-Infinity': -Infinity, '-0': -0 };
    if ('ref' in value) return refs.get(value.ref);
    if ('v' in value) return special[value.v];
    if ('d' in value) return new Date(value.d);
    if ('u' in value) return value.u; // a URL cannot be in a database
    if ('bi' in value) return BigInt(value.bi);
    if ('r' in value) return new RegExp(value.r.p, value.r.f);
    if ('e' in value) return Object.assign(new Error(value.e.m), { name: value.e.n, stack: value.e.s });
    if ('ab' in value) return Uint8Array.fromBase64(value.ab.b).buffer;
    if ('ta' in value) return new this.arrays[value.ta.k](Uint8Array.fromBase64(value.ta.b).buffer);
    const keep = (made) => { refs.set(value.id, made); return made; };
    if ('m' in value) {
      const made = keep(new Map());
      for (const { k, v } of value.m) made.set(this.decode(k, refs), this.decode(v, refs));
      return made;
    }
    if ('s' in value) {
      const made = keep(new Set());
      for (const v of value.s) made.add(this.decode(v, refs));
      return made;
    }
    if ('a' in value) {
      const made = keep([]);
      for (const v of value.a) made.push(this.decode(v, refs));
      return made;
    }
    const made = keep({});
    for (const { k, v } of value.o) if (k !== '__proto__') made[k] = this.decode(v, refs);
    return made;
  },

  // write creates databases and returns the number of records in each, or -1 for
  // one that could not be created as saved: write deletes that one.
  async write(databases) {
    const written = [];
    for (const database of databases) {
      try {
        written.push(await this.writeOne(database));
      } catch {
        await this.settled(indexedDB.deleteDatabase(database.name)).catch(() => {});
        written.push(-1);
      }
    }
    return written;
  },

  async writeOne({ name, version, stores }) {
    const request = indexedDB.open(name, version);
    request.onupgradeneeded = () => {
      for (const s of stores) {
        const store = request.result.createObjectStore(s.name, {
          autoIncrement: s.autoIncrement, keyPath: s.keyPathArray ?? s.keyPath ?? null });
        for (const i of s.indexes) store.createIndex(i.name, i.keyPathArray ?? i.keyPath, { unique: i.unique, multiEntry: i.multiEntry });
      }
    };
    const db = await this.settled(request);
    try {
      if (!stores.length) return 0;
      const transaction = db.transaction(db.objectStoreNames, 'readwrite');
      let n = 0;
      const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      for (const s of stores) {
        const store = transaction.objectStore(s.name);
        for (const r of s.records) {
          const value = 'value' in r ? r.value : this.decode(r.valueEncoded);
          if (store.keyPath !== null) store.add(value);
          else store.add(value, 'key' in r ? r.key : this.decode(r.keyEncoded));
          n++;
        }
      }
      await done;
      return n;
    } finally {
      db.close();
    }
  },

  // read returns the databases, the number of records that JSON cannot express,
  // and the localStorage. limit bounds the records, in characters of JSON.
  async read(limit) {
    const out = { databases: [], lost: 0, items: [] };
    for (let i = 0; i < localStorage.length; i++) {
      const key = localStorage.key(i);
      out.items.push({ key, value: localStorage.getItem(key) });
    }
    const field = (name, value) => (this.plain(value) ? { [name]: value } : { [`${name}Encoded`]: this.encode(value) });
    const path = (p) => (Array.isArray(p) ? { keyPathArray: p } : p === null ? {} : { keyPath: p });
    for (const { name, version } of await indexedDB.databases()) {
      const db = await this.settled(indexedDB.open(name));
      try {
        const stores = [];
        const transaction = db.objectStoreNames.length ? db.transaction(db.objectStoreNames, 'readonly') : null;
        for (const storeName of db.objectStoreNames) {
          const store = transaction.objectStore(storeName);
          const records = [];
          for (let at = await this.settled(store.openCursor()); at;) {
            try {
              const record = { ...(store.keyPath === null ? field('key', at.primaryKey) : {}), ...field('value', at.value) };
              limit -= JSON.stringify(record).length;
              records.push(record);
            } catch (error) {
              if (!(error instanceof TypeError)) throw error;
              out.lost++;
            }
            if (limit < 0) throw new RangeError('too much');
            const { request } = at;
            at.continue();
            at = await this.settled(request);
          }
          stores.push({
            name: storeName, autoIncrement: store.autoIncrement, ...path(store.keyPath), records,
            indexes: [...store.indexNames].map((n) => store.index(n)).map((i) => ({
              name: i.name, ...path(i.keyPath), multiEntry: i.multiEntry, unique: i.unique })),
          });
        }
        out.databases.push({ name, version, stores });
      } finally {
        db.close();
      }
    }
    return out;
  },
})
