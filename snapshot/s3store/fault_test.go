package s3store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/s3store"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

var archive = func() snapshot.Key {
	key, err := snapshot.ArchiveKey(strings.Repeat("a", 64))
	if err != nil {
		panic(err)
	}
	return key
}()

// behindProxy opens a store whose requests can be made to fail.
func behindProxy(t *testing.T, server *s3test.Server) (*s3store.Store, *s3test.Proxy) {
	t.Helper()
	p := s3test.NewProxy(t, server)
	o := server.Options(t)
	o.Endpoint = p.Endpoint
	return open(t, o), p
}

func sumOf(b []byte) snapshot.Sum { return snapshot.Sum{Size: int64(len(b)), SHA256: sha256.Sum256(b)} }

// commit uploads and commits, and reports what became of it.
func commit(t *testing.T, s snapshot.Store, key snapshot.Key, b []byte) (bool, error) {
	t.Helper()
	up, err := s.Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := up.Abort(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := up.Write(b); err != nil {
		t.Fatal(err)
	}
	return up.Commit(t.Context(), key, sumOf(b))
}

func content(t *testing.T, s snapshot.Store, key snapshot.Key) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return b
}

// pieces is more than two parts of an upload.
var pieces = bytes.Repeat([]byte("0123456789abcdef"), 12<<20/16)

// What fails for a while is tried again, and nobody notices: every operation,
// by every failure that passes.
func TestFailuresThatPass(t *testing.T) {
	server := s3test.Start(t)
	s, p := behindProxy(t, server)
	for name, f := range map[string]s3test.Fault{
		"500": s3test.Answer(http.StatusInternalServerError, "InternalError"), "503": s3test.Answer(http.StatusServiceUnavailable, "SlowDown"),
		"an answer that is no XML of S3's": s3test.Answer(http.StatusBadGateway, ""),
		"connection dropped in a request":  s3test.CutUpload, "answer lost": s3test.LoseAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			fail := func(methods ...string) {
				left := map[string]int{}
				for _, m := range methods {
					left[m] = 2
				}
				p.Plan(func(r *http.Request) s3test.Fault {
					if left[r.Method]--; left[r.Method] < 0 {
						return s3test.Pass
					}
					return f
				})
			}
			fail(http.MethodPut)
			if created, err := s.Create(t.Context(), archive, []byte("one")); !created || err != nil {
				t.Errorf("Create: %v, %v", created, err)
			}
			fail(http.MethodPut, http.MethodHead)
			if created, err := s.Create(t.Context(), archive, []byte("two")); created || err != nil {
				t.Errorf("Create of a taken key: %v, %v", created, err)
			}
			fail(http.MethodPut, http.MethodGet)
			if swapped, err := s.Swap(t.Context(), archive, []byte("one"), []byte("three")); !swapped || err != nil {
				t.Errorf("Swap: %v, %v", swapped, err)
			}
			fail(http.MethodGet, http.MethodHead)
			if got := content(t, s, archive); string(got) != "three" {
				t.Errorf("Open: %q", got)
			}
			if st, err := s.Stat(t.Context(), archive); st.Size != 5 || err != nil {
				t.Errorf("Stat: %v, %v", st, err)
			}
			fail(http.MethodGet)
			if names, err := s.List(t.Context(), snapshot.ArchiveFolder(), 10, ""); len(names) != 1 || err != nil {
				t.Errorf("List: %v, %v", names, err)
			}
			fail(http.MethodDelete, http.MethodPut)
			if err := s.Health(t.Context()); err != nil {
				t.Errorf("Health: %v", err)
			}
			fail(http.MethodDelete)
			if err := s.Delete(t.Context(), archive); err != nil {
				t.Errorf("Delete: %v", err)
			}
			fail(http.MethodPost, http.MethodPut)
			if created, err := commit(t, s, archive, pieces); !created || err != nil {
				t.Errorf("Commit in parts: %v, %v", created, err)
			}
			p.Plan(func(r *http.Request) s3test.Fault { return s3test.Pass })
			if !bytes.Equal(content(t, s, archive), pieces) {
				t.Error("other bytes are stored than were uploaded")
			}
			if err := s.Delete(t.Context(), archive); err != nil {
				t.Error(err)
			}
		})
	}
}

// A service that stays broken is given up, with the code that says so, and a
// call whose ctx ends does not go on trying.
func TestFailuresThatStay(t *testing.T) {
	s, p := behindProxy(t, s3test.Start(t))
	always := func(f s3test.Fault) { p.Plan(func(*http.Request) s3test.Fault { return f }) }
	for _, f := range []s3test.Fault{s3test.Answer(http.StatusServiceUnavailable, "SlowDown"), s3test.CutUpload} {
		always(f)
		_, opened := s.Open(t.Context(), archive)
		_, created := s.Create(t.Context(), archive, []byte("x"))
		_, committed := commit(t, s, archive, pieces)
		for call, err := range map[string]error{"Open": opened, "Create": created, "Commit": committed, "Delete": s.Delete(t.Context(), archive)} {
			if !fault.Is(err, fault.StoreFailed) {
				t.Errorf("%s: %v, want store_failed", call, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.Plan(func(*http.Request) s3test.Fault { cancel(); return s3test.Hang })
	if _, err := s.Create(ctx, archive, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("Create over a service that never answers: %v", err)
	}
	if n := len(p.Seen()); n != 1 {
		t.Errorf("%d requests after the ctx ended", n-1)
	}
}

// A connection on which nothing moves is dropped, and another taken.
func TestStalledConnection(t *testing.T) {
	server := s3test.Start(t)
	p := s3test.NewProxy(t, server)
	o := server.Options(t)
	o.Endpoint, o.Stall = p.Endpoint, 500*time.Millisecond
	s := open(t, o)
	p.Plan(s3test.Times(1, http.MethodPut, s3test.Hang))
	if created, err := s.Create(t.Context(), archive, []byte("one")); !created || err != nil {
		t.Fatalf("Create: %v, %v", created, err)
	}
	p.Plan(s3test.Times(1, http.MethodGet, s3test.Hang))
	if got := content(t, s, archive); string(got) != "one" {
		t.Errorf("read %q", got)
	}
}

// A download goes on where its connection was dropped; not on another object.
func TestDroppedDownload(t *testing.T) {
	s, p := behindProxy(t, s3test.Start(t))
	if created, err := commit(t, s, archive, pieces); !created || err != nil {
		t.Fatal(created, err)
	}
	p.Plan(s3test.Times(3, http.MethodGet, s3test.CutDownload))
	if !bytes.Equal(content(t, s, archive), pieces) {
		t.Error("other bytes were read than are stored")
	}
	if got := p.Seen(); len(got) != 4 {
		t.Errorf("requests: %v, want 4 GETs", got)
	}

	p.Plan(s3test.Times(1, http.MethodGet, s3test.CutDownload))
	r, err := s.Open(t.Context(), archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	if created, err := s.Create(t.Context(), archive, slices.Concat(pieces[:1<<20], []byte("other"))); !created || err != nil {
		t.Fatal(created, err)
	}
	if _, err := io.Copy(io.Discard, r); !fault.Is(err, fault.StoreFailed) {
		t.Errorf("a read of what was replaced meanwhile: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// The write was done and its answer lost: it counts as done. What another has
// written does not.
func TestLostAnswers(t *testing.T) {
	server := s3test.Start(t)
	s, p := behindProxy(t, server)
	o := server.Options(t)
	o.Prefix = s3store.PrefixOf(s)
	other := open(t, o)

	lose := func(r *http.Request) s3test.Fault {
		if r.Method == http.MethodPut || s3test.IsComplete(r) {
			return s3test.LoseAnswer
		}
		return s3test.Pass
	}
	p.Plan(lose) // each time: in the end only a look tells
	if created, err := s.Create(t.Context(), archive, []byte("one")); !created || err != nil {
		t.Errorf("Create that was done: %v, %v", created, err)
	}
	if swapped, err := s.Swap(t.Context(), archive, []byte("one"), []byte("two")); !swapped || err != nil {
		t.Errorf("Swap that was done: %v, %v", swapped, err)
	}
	p.Plan(s3test.Times(1, http.MethodPut, s3test.LoseAnswer))
	if created, err := s.Create(t.Context(), archive, []byte("three")); created || err != nil {
		t.Errorf("Create of a taken key: %v, %v", created, err)
	}

	// Another writes between a write and its second try.
	between := func(act func()) func(*http.Request) s3test.Fault {
		first := true
		return func(r *http.Request) s3test.Fault {
			if r.Method != http.MethodPut {
				return s3test.Pass
			}
			if first {
				first = false
				return s3test.LoseAnswer
			}
			act()
			return s3test.Pass
		}
	}
	p.Plan(between(func() {
		if swapped, err := other.Swap(t.Context(), archive, []byte("four"), []byte("five")); !swapped || err != nil {
			t.Errorf("the other's Swap: %v, %v", swapped, err)
		}
	}))
	// It was done, and the other has seen it: to say false would make the
	// caller do it twice.
	if swapped, err := s.Swap(t.Context(), archive, []byte("two"), []byte("four")); swapped || !fault.Is(err, fault.StoreFailed) {
		t.Errorf("Swap that another wrote over: %v, %v", swapped, err)
	}
	if got := content(t, other, archive); string(got) != "five" {
		t.Errorf("there is %q", got)
	}

	p.Plan(func(*http.Request) s3test.Fault { return s3test.Pass })
	if err := s.Delete(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	p.Plan(func(r *http.Request) s3test.Fault {
		if s3test.IsComplete(r) {
			return s3test.LoseAnswer
		}
		return s3test.Pass
	})
	if created, err := commit(t, s, archive, pieces); !created || err != nil {
		t.Errorf("Commit in parts that was done: %v, %v", created, err)
	}
	p.Plan(func(*http.Request) s3test.Fault { return s3test.Pass })
	if created, err := commit(t, s, archive, pieces); created || err != nil {
		t.Errorf("Commit in parts of a taken key: %v, %v", created, err)
	}
}
