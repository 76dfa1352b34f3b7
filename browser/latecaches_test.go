package browser

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// fakeTail is a tail whose files are there already. Its unpacking ends when the test says so.
type fakeTail struct {
	waited func()        // Wait was called
	end    chan struct{} // the unpacking ends
	err    error
	ended  chan error // receives the argument of Ended
}

func (f *fakeTail) Wait(ctx context.Context) error {
	f.waited()
	select {
	case <-f.end:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeTail) Ended(err error) { f.ended <- err }

// spareWithTail returns a spare for the environment of a closed browser, and the part of it
// that is unpacked later.
func (r *rig) spareWithTail(from *Browser) (p *Spare, tail *fakeTail, waited chan struct{}) {
	r.t.Helper()
	p = r.spare()
	r.load(p, from)
	dir := p.Dir().Profile()
	moved := 0
	folders, err := profile.CacheFolders(os.DirFS(dir), profile.Default)
	for _, folder := range folders {
		caches, _ := os.ReadDir(filepath.Join(dir, profile.Default, folder))
		for _, cache := range caches {
			to := filepath.Join(dir, profile.Unpacking, profile.Default, folder)
			if err == nil && cache.IsDir() {
				moved++
				err = errors.Join(os.MkdirAll(to, 0o700), os.Rename(filepath.Join(dir, profile.Default, folder, cache.Name()), filepath.Join(to, cache.Name())))
			}
		}
	}
	if err == nil {
		err = p.Dir().ChownProfile(profile.Unpacking)
	}
	if err != nil || moved == 0 {
		r.t.Fatalf("%d caches, %v", moved, err)
	}
	waited = make(chan struct{})
	return p, &fakeTail{waited: sync.OnceFunc(func() { close(waited) }), end: make(chan struct{}), ended: make(chan error, 1)}, waited
}

// cachedSite returns a closed browser whose page has stored something in a cache, and its
// document.
func (r *rig) cachedSite(s *site) (*Browser, state.Document) {
	r.t.Helper()
	b := r.fresh()
	r.open(b, s.url+"/page")
	r.eval(b, s.url+"/page", `caches.open("c").then((c) => c.put("/kept", new Response("kept"))).then(() => 1)`)
	doc := r.save(b)
	doc.Inventory = r.inventory(b.dir).Inventory
	return b, doc
}

const readCache = `caches.open("c").then((c) => c.match("/kept")).then((r) => r ? r.text() : "lost")`

// The page of an environment whose caches are still being unpacked works. What it asks of them
// waits. So does a save.
func TestCachesFollow(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, nil)
	from, doc := r.cachedSite(s)
	p, tail, waited := r.spareWithTail(from)
	b, lines, err := p.Restored(within(t), doc, Options{RestoreTabs: true, Tail: tail})
	if err != nil {
		t.Fatal(err)
	}
	if !b.entered {
		t.Fatalf("Chrome opened a profile: %s", b.SecondProfileReason())
	}
	if got := line(lines, state.ComponentCacheStorage, ""); got.Saved != 1 || got.Restored != 1 {
		t.Errorf("the report: %+v", got)
	}
	if got := r.eval(b, s.url+"/page", "document.title"); got != "title of /page" {
		t.Errorf("the page: %s", got)
	}
	if _, err := profile.Select(within(t), b.dir.Profile()); !fault.Is(err, fault.SaveFailed) {
		t.Errorf("the incomplete environment can be saved: %v", err)
	}
	r.eval(b, s.url+"/page", "window.read = "+readCache+"; 1")
	const orWaits = `Promise.race([read, new Promise((done) => setTimeout(done, 300, "waits"))])`
	if got := r.eval(b, s.url+"/page", orWaits); got != "waits" {
		t.Errorf("the page got %s before the caches were there", got)
	}
	<-waited
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.Freeze(soon); err == nil || b.Frozen() {
		t.Errorf("Chrome was frozen before the caches were there: %v", err)
	}
	listed := make(chan error, 1)
	go func() { // a save lists the files first
		_, err := b.Environment(within(t))
		listed <- err
	}()
	close(tail.end)
	if err := errors.Join(<-listed, <-tail.ended); err != nil {
		t.Fatal(err)
	}
	if got := r.eval(b, s.url+"/page", "read"); got != "kept" {
		t.Errorf("the page got %s", got)
	}
	found, err := b.Verify(within(t), doc, lines)
	if err != nil || len(found.Differences) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	r.save(b)
	if held, _ := r.inventory(b.dir).Inventory.Of(state.ComponentCacheStorage, s.url+"/"); held.Items != 1 || held.Damage != "" {
		t.Errorf("the next save has %+v", held)
	}
}

// If the rest of an environment cannot be unpacked, its Chrome is ended and cannot be saved.
func TestCachesDoNotFollow(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, nil)
	from, doc := r.cachedSite(s)
	p, tail, _ := r.spareWithTail(from)
	tail.err = errors.New("damaged")
	b, _, err := p.Restored(within(t), doc, Options{RestoreTabs: true, Tail: tail})
	if err != nil {
		t.Fatal(err)
	}
	close(tail.end)
	<-b.Done()
	if err := <-tail.ended; err == nil {
		t.Error("the end of the tail has no error")
	}
	if err := b.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := profile.Select(within(t), b.dir.Profile()); !fault.Is(err, fault.SaveFailed) {
		t.Errorf("saved: %v", err)
	}
	if err := profile.UseDefaultFolder(b.dir.Profile()); !fault.Is(err, fault.SaveFailed) {
		t.Errorf("restarted: %v", err)
	}
}

// A Chrome can be ended while its caches are being unpacked.
func TestKilledBeforeCachesFollow(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, nil)
	from, doc := r.cachedSite(s)
	p, tail, waited := r.spareWithTail(from)
	b, _, err := p.Restored(within(t), doc, Options{RestoreTabs: true, Tail: tail})
	if err != nil {
		t.Fatal(err)
	}
	<-waited
	if err := b.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
}

// An environment that Chrome opens as another profile gets all its files first.
func TestCachesFirst(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, nil)
	from, doc := r.cachedSite(s)
	p, tail, _ := r.spareWithTail(from)
	close(tail.end)
	b, lines, err := p.Restored(within(t), doc, Options{RestoreTabs: true, Tail: tail, Overrides: state.Overrides{Locale: "de-DE"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := line(lines, state.ComponentCacheStorage, ""); b.entered || got.Restored != 1 {
		t.Errorf("entered: %t; %+v", b.entered, got)
	}
	if got := r.eval(b, s.url+"/page", readCache); got != "kept" {
		t.Errorf("the page got %s", got)
	}
}
