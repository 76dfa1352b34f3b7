package main

import "context"

// storage returns what sites keep outside of databases and tabs.
func storage() []kind {
	return []kind{
		{"localStorage", inPage,
			script(`localStorage.setItem("kind", mark)`),
			script(`return localStorage.getItem("kind")`)},
		{"localStorage with a lone surrogate", inPage,
			script(`localStorage.setItem("lone\ud800", "\udfff" + mark)`),
			script(`
				const value = localStorage.getItem("lone\ud800");
				return value && JSON.stringify(value)`)}, // JSON escapes the surrogate
		{"localStorage of a third-party frame", inPage,
			framed(`localStorage.setItem("framed", "kept")`),
			framed(`return localStorage.getItem("framed")`)},
		{"… separate from the site's own localStorage", inPage, seedApart, readApart},
		{"origin private file system (OPFS)", inPage,
			script(`
				const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("folder", { create: true });
				const writer = await (await folder.getFileHandle("file", { create: true })).createWritable();
				await writer.write(new Uint8Array([0, 255, 10, 13]));
				await writer.close();`),
			script(`
				const root = await navigator.storage.getDirectory();
				for await (const name of root.keys()) {
					if (name !== "folder") continue;
					const file = await (await (await root.getDirectoryHandle(name)).getFileHandle("file")).getFile();
					return String(new Uint8Array(await file.arrayBuffer()));
				}`)},
		{"storage bucket with a database", inPage,
			script(`
				const bucket = await navigator.storageBuckets.open("bucket", { expires: Date.UTC(2100) });
				const at = await db("inside", (d) => d.createObjectStore("store"), 1, bucket.indexedDB);
				await done(at.transaction("store", "readwrite").objectStore("store").put(mark, "key"));
				at.close();`),
			script(`
				if (!(await navigator.storageBuckets.keys()).includes("bucket")) return;
				const bucket = await navigator.storageBuckets.open("bucket");
				const at = await db("inside", null, 1, bucket.indexedDB);
				const value = await done(at.transaction("store").objectStore("store").get("key"));
				at.close();
				return value + ", " + await bucket.expires();`)},
	}
}

// seedApart stores one value for a site in its own page and another in a frame of
// another site, under the same key.
func seedApart(ctx context.Context, at *visit) (string, error) {
	if _, err := inNewTab(ctx, at, at.site.Origin("b")+"/", `localStorage.setItem("apart", "own")`); err != nil {
		return "", err
	}
	return at.work.run(ctx, `return frame('localStorage.setItem("apart", "framed")')`)
}

func readApart(ctx context.Context, at *visit) (string, error) {
	const read = `return localStorage.getItem("apart")`
	own, err := inNewTab(ctx, at, at.site.Origin("b")+"/", read)
	if err != nil {
		return "", err
	}
	in, err := at.work.run(ctx, "return frame('"+read+"')")
	if own == in || err != nil {
		return "", err
	}
	return "itself: " + own + ", in the frame: " + in, nil
}
