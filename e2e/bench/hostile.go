package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// pageAttacks are scripts by what they use up. They run in a page of the hostile user's
// session.
func pageAttacks() map[string]string {
	return map[string]string{
		"memory":    `(() => { const all = []; setInterval(() => { for (let i = 0; i < 8; i++) { const a = new Uint8Array(16 << 20); a.fill(i + 1); all.push(a) } }, 50); return true })()`,
		"processor": `(() => { const w = URL.createObjectURL(new Blob(["for (;;);"])); for (let i = 0; i < 8; i++) new Worker(w); return true })()`,
		"processes": `(() => { setInterval(() => { for (let i = 0; i < 20; i++) { const f = document.createElement("iframe"); f.srcdoc = "<script>for (let i = 0; i < 4; i++) new Worker(URL.createObjectURL(new Blob(['setInterval(() => 0, 1)'])))</script>"; document.body.append(f) } }, 100); return true })()`,
		"disk": `(async () => { const c = await caches.open("filler"); const b = new Uint8Array(4 << 20); crypto.getRandomValues(b.subarray(0, 65536));
			(async () => { for (let i = 0; ; i++) await c.put("/filler-" + i, new Response(b)) })(); return true })()`,
		"refused addresses": `(() => { setInterval(() => { for (let i = 0; i < 50; i++) fetch("http://169.254.169.254/" + Math.random()).catch(() => 0) }, 20); return true })()`,
		"requests":          `(() => { setInterval(() => { for (let i = 0; i < 20; i++) fetch("/?" + Math.random()).catch(() => 0) }, 20); return true })()`,
		"console":           `(() => { setInterval(() => { for (let i = 0; i < 200; i++) console.log("x".repeat(1000) + i) }, 10); return true })()`,
	}
}

// attack starts everything that the hostile user does until the context ends. Whatever
// it does may fail.
func (s *strangers) attack(ctx context.Context, all *sync.WaitGroup, seed uint64) {
	eve := hostileUser()
	key := s.keys[eve.user]
	for n := range eve.chrome + eve.shell {
		engine := shell
		if n < eve.chrome {
			engine = chrome
		}
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		all.Go(func() {
			for ctx.Err() == nil {
				s.hostileSession(ctx, engine, random)
			}
		})
	}
	forever := func(what string, callers int, do func()) {
		for range callers {
			all.Go(func() {
				for ctx.Err() == nil {
					do()
					s.attacked(what)
					pause(ctx, time.Millisecond)
				}
			})
		}
	}
	forever("call: list sessions", 4, func() { _ = s.h.CallAs(ctx, key, http.MethodGet, "/v1/sessions", nil, nil) })
	forever("call: a wrong key", 2, func() { _ = s.h.CallAs(ctx, "wrong_key_0123456789", http.MethodGet, "/v1/me", nil, nil) })
	forever("call: create beyond the quota", 4, func() {
		_ = s.h.CallAs(ctx, key, http.MethodPost, "/v1/sessions", obj{"engine": shell, "wait_seconds": 1}, nil)
	})
	forever("call: import of a bomb", 1, func() {
		_ = s.h.CallAs(ctx, key, http.MethodPost, "/v1/snapshots?format=datadir", bytes.Repeat([]byte{0}, 1<<20), nil)
	})
	forever("half-open connections", 1, func() { s.halfOpen(ctx, 200) })
}

// hostileSession makes a session, attacks in its pages for a while, and ends it in one of
// several ways.
func (s *strangers) hostileSession(ctx context.Context, engine string, random *rand.Rand) {
	key := s.keys[hostileUser().user]
	made := &rig.Session{}
	if s.h.CallAs(ctx, key, http.MethodPost, "/v1/sessions", obj{"engine": engine, "wait_seconds": 10}, made) != nil {
		pause(ctx, time.Second)
		return
	}
	attacks := pageAttacks()
	names := []string{"memory", "processor", "processes", "disk", "refused addresses", "requests", "console", "tabs", "messages"}
	name := names[random.IntN(len(names))]
	s.attacked("session: " + name)
	if t, err := front(ctx, made.CDP); err == nil {
		_ = t.visit(ctx, s.h.site.URL+"/", `document.readyState === "complete"`)
		switch name {
		case "tabs":
			for ctx.Err() == nil && t.Call(ctx, "", "Target.createTarget", obj{"url": s.h.site.URL + "/"}, nil) == nil {
				pause(ctx, 50*time.Millisecond)
			}
		case "messages":
			for range 20 {
				var text string
				_ = t.evaluate(ctx, `"x".repeat(20 << 20)`, &text)
			}
		default:
			var is bool
			_ = t.evaluate(ctx, attacks[name], &is)
		}
		pause(ctx, time.Duration(10+random.IntN(20))*time.Second)
		t.Close()
	}
	mode := []string{"none", "filesystem", "memory"}[random.IntN(3)]
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), strangerGrace/2)
	defer cancel()
	_ = s.h.CallAs(ending, key, http.MethodDelete, fmt.Sprintf("/v1/sessions/%s?save_snapshot_mode=%s", made.ID, mode), nil, nil)
}

// halfOpen opens connections that send a part of a request, and closes them after a while.
func (s *strangers) halfOpen(ctx context.Context, count int) {
	at, err := url.Parse(s.h.URL)
	if err != nil {
		return
	}
	var open []net.Conn
	for range count {
		if c, err := net.Dial("tcp", at.Host); err == nil {
			_, _ = io.WriteString(c, "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Le")
			open = append(open, c)
		}
	}
	pause(ctx, 5*time.Second)
	for _, c := range open {
		_ = c.Close() // the daemon may have closed it
	}
}

// attacked counts an attack.
func (s *strangers) attacked(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attacks[what]++
}
