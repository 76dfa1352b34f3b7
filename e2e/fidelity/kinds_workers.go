package main

import "context"

// workers returns caches and what is served from them.
func workers() []kind {
	return []kind{
		{"Cache API", inPage,
			script(`await (await caches.open("plain")).put("/made", new Response(mark, { status: 203, headers: { "X-Kind": "cache" } }))`),
			script(`
				const r = await caches.match("/made");
				return r && [r.status, r.headers.get("X-Kind"), await r.text()].join()`)},
		{"service worker answers offline", inPage,
			script(`
				await navigator.serviceWorker.register("/worker.js", { scope: "/offline/" });
				const r = await navigator.serviceWorker.getRegistration("/offline/");
				const worker = r.installing ?? r.waiting ?? r.active;
				while (worker.state !== "activated")
					await new Promise((changed) => worker.addEventListener("statechange", changed, { once: true }));`),
			offline(`document.title`)},
		{"Cache API: an opaque response runs", inPage, seedOpaque, offline(`window.opaque`)},
	}
}

// seedOpaque caches another site's script, which the page may run but not read.
func seedOpaque(ctx context.Context, at *visit) (string, error) {
	return at.work.run(ctx, `
		const r = await fetch("`+at.site.Origin("b")+`/opaque.js", { mode: "no-cors" });
		if (r.type !== "opaque") throw new Error("not opaque");
		await (await caches.open("opaque")).put("/opaque", r);`)
}

// offline evaluates an expression in a page that only the service worker can serve.
func offline(expression string) step {
	return script(`
		const look = (window, document) => document.title === "from the worker" && ` + expression + `;
		const page = document.createElement("iframe");
		const loaded = new Promise((done) => { page.onload = done; });
		page.src = "/offline/page";
		document.body.append(page);
		await loaded;
		const seen = look(page.contentWindow, page.contentDocument);
		page.remove();
		return seen || "";`)
}
