package main

// database returns what sites keep in IndexedDB. Each kind has its own database, so that
// one that is lost does not affect the others.
func database() []kind {
	return []kind{
		{"IndexedDB: version, key path, indexes", inPage,
			script(`
				(await db("schema", (d) => {
					const store = d.createObjectStore("store", { keyPath: ["a", "b"] });
					store.createIndex("many", "tags", { multiEntry: true });
					store.createIndex("one", ["x", "y"], { unique: true });
					store.put({ a: 1, b: 2, x: 3, y: 4, tags: ["t", "u"] });
				}, 7)).close()`),
			script(`
				if (!(await indexedDB.databases()).some(({ name }) => name === "schema")) return;
				const d = await db("schema");
				const store = d.transaction("store").objectStore("store");
				const indexes = [...store.indexNames].map((name) => store.index(name))
					.map(({ name, keyPath, multiEntry, unique }) => ({ name, keyPath, multiEntry, unique }));
				const found = await done(store.index("many").getAllKeys("u"));
				const all = { version: d.version, keyPath: store.keyPath, auto: store.autoIncrement, indexes, found };
				d.close();
				return JSON.stringify(all);`)},
		{"IndexedDB: auto-increment continues", inPage,
			script(`
				const d = await db("counter", (d) => d.createObjectStore("store", { autoIncrement: true }));
				const store = d.transaction("store", "readwrite").objectStore("store");
				for (let i = 0; i < 5; i++) store.add("record");
				await done(store.delete(IDBKeyRange.lowerBound(3)));
				d.close();`),
			script(`
				if (!(await indexedDB.databases()).some(({ name }) => name === "counter")) return;
				const d = await db("counter");
				const adding = d.transaction("store", "readwrite");
				const next = await done(adding.objectStore("store").add("tried"));
				adding.abort(); // takes the counter back too
				d.close();
				return String(next);`)},
		value("Blob and File", `{ blob: new Blob(["in a blob"], { type: "text/x" }), file: new File(["in a file"], "name.txt", { lastModified: 1e12 }) }`,
			`JSON.stringify([await v.blob.text(), v.blob.type, await v.file.text(), v.file.name, v.file.lastModified])`),
		value("Map and Set", `{ map: new Map([["k", new Map([[1, 2]])]]), set: new Set(["x", 3]) }`,
			`JSON.stringify([[...v.map], [...v.map.get("k")], [...v.set]])`),
		value("Date, RegExp, BigInt, undefined", `{ date: new Date(86400000.0), pattern: /a.b/gi, big: 2n ** 70n, none: undefined }`,
			`[v.date.toISOString(), v.pattern, v.big, "none" in v].join()`),
		value("typed arrays, ArrayBuffer", `{ bytes: new Uint8Array([1, 255]), floats: new Float64Array([0.1, NaN, -0]), bigs: new BigInt64Array([-5n]), buffer: new ArrayBuffer(3) }`,
			`[v.bytes, v.floats.map((f) => 1 / f), v.bigs, v.buffer.byteLength].join(";")`),
		value("a non-extractable CryptoKey signs", `await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"])`,
			`v.extractable ? "" : String(new Uint8Array(await crypto.subtle.sign("HMAC", v, new Uint8Array(8))))`),
		{"IndexedDB of a third-party frame", inPage,
			framed(`
				const opening = indexedDB.open("framed", 3);
				opening.onupgradeneeded = () => opening.result.createObjectStore("store").put("kept", "key");
				await new Promise((resolve, reject) => { opening.onsuccess = resolve; opening.onerror = () => reject(opening.error); });
				opening.result.close();`),
			framed(`
				if (!(await indexedDB.databases()).some(({ name }) => name === "framed")) return;
				const opening = indexedDB.open("framed");
				await new Promise((resolve, reject) => { opening.onsuccess = resolve; opening.onerror = reject; });
				const getting = opening.result.transaction("store").objectStore("store").get("key");
				await new Promise((resolve, reject) => { getting.onsuccess = resolve; getting.onerror = reject; });
				opening.result.close();
				return getting.result + ", version " + opening.result.version;`)},
	}
}

// value is a value that structured clone supports and JSON does not. text is an
// expression that describes v, and throws if v has another type.
func value(what, made, text string) kind {
	name := quoted(what)
	return kind{"IndexedDB: " + what, inPage,
		script(`
			const value = ` + made + `;
			const d = await db(` + name + `, (d) => d.createObjectStore("store"));
			await done(d.transaction("store", "readwrite").objectStore("store").put(value, "key"));
			d.close();`),
		script(`
			if (!(await indexedDB.databases()).some(({ name }) => name === ` + name + `)) return;
			const d = await db(` + name + `);
			const v = await done(d.transaction("store").objectStore("store").get("key"));
			const text = ` + text + `;
			d.close();
			return text;`)}
}
