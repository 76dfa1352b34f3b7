package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// The site is an application that works offline: a service worker's cache with
// scripts and pictures, and records in IndexedDB. Everything follows from its
// number and version, so that a new version of a script changes what an edit
// changes.
const (
	scripts  = 60   // of about 200 KB each
	pictures = 60   // of 150 KB each
	records  = 3000 // of about 3 KB each
)

func newSite() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		http.SetCookie(w, &http.Cookie{Name: "login", Value: "kept", MaxAge: 1 << 20})
		_, _ = w.Write([]byte("<!doctype html><title>mail</title><script>" + page + "</script>"))
	})
	mux.HandleFunc("/worker.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(worker))
	})
	mux.HandleFunc("/script/{n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(script(number(r.PathValue("n")), number(r.FormValue("v")))))
	})
	mux.HandleFunc("/picture/{n}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/jpeg")
		_, _ = w.Write(picture(number(r.PathValue("n"))))
	})
	mux.HandleFunc("/records", func(w http.ResponseWriter, r *http.Request) {
		from, count, version := number(r.FormValue("from")), number(r.FormValue("count")), number(r.FormValue("v"))
		list := make([]map[string]any, count)
		for i := range list {
			list[i] = record(from+i, version)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	})
	return httptest.NewServer(mux)
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // the page alone asks
	return n
}

// words give text that a compressor takes to about a quarter, as it does code
// and mail.
var words = func() []string {
	random := rand.New(rand.NewPCG(1, 1))
	list := make([]string, 4000)
	for i := range list {
		var w strings.Builder
		for range 2 + random.IntN(9) {
			w.WriteByte(byte('a' + random.IntN(26)))
		}
		list[i] = w.String()
	}
	return list
}()

// text has so many words, by a seed.
func text(random *rand.Rand, count int) string {
	var b strings.Builder
	for range count {
		b.WriteString(words[int(random.ExpFloat64()*400)%len(words)])
		b.WriteByte(' ')
	}
	return b.String()
}

// script has functions, of which each version rewrites one in twenty.
func script(n, version int) string {
	var b strings.Builder
	for f := range 400 {
		of := 0
		for v := 1; v <= version; v++ {
			if rand.New(rand.NewPCG(uint64(n*1000+f), uint64(v))).IntN(20) == 0 {
				of = v
			}
		}
		random := rand.New(rand.NewPCG(uint64(n*1000+f), uint64(1000+of)))
		fmt.Fprintf(&b, "function f%d(a, b) { /* %s*/ return a + b * %d; }\n", f, text(random, 60), random.IntN(1e6))
	}
	return b.String()
}

// picture is what nothing makes smaller.
func picture(n int) []byte {
	random := rand.New(rand.NewPCG(uint64(n), 7))
	body := make([]byte, 150<<10)
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	return body
}

func record(n, version int) map[string]any {
	random := rand.New(rand.NewPCG(uint64(n), uint64(version)))
	return map[string]any{"id": n, "version": version, "subject": text(random, 8), "body": text(random, 450), "read": version > 0}
}

const worker = `
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (e) => e.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (e) => e.respondWith(caches.match(e.request).then((hit) => hit ?? fetch(e.request))));
`

// page has what the measurement calls: fetched and kept, as such sites do.
const page = `
async function keep(path, version) {
	const cache = await caches.open("app");
	await cache.put(path, await fetch(path + "?v=" + version, { cache: "no-store" }));
}
async function keepRecords(from, count, version) {
	const list = await (await fetch("/records?from=" + from + "&count=" + count + "&v=" + version, { cache: "no-store" })).json();
	const db = await new Promise((done, failed) => {
		const open = indexedDB.open("mail", 1);
		open.onupgradeneeded = () => open.result.createObjectStore("messages", { keyPath: "id" }).createIndex("subject", "subject");
		open.onsuccess = () => done(open.result);
		open.onerror = () => failed(open.error);
	});
	await new Promise((done, failed) => {
		const tx = db.transaction("messages", "readwrite");
		for (const one of list) tx.objectStore("messages").put(one);
		tx.oncomplete = done;
		tx.onerror = () => failed(tx.error);
	});
	db.close();
}
`
