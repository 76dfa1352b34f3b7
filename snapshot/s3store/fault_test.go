package s3store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// Every operation retries after every temporary failure, and its caller sees none of it.
func TestTemporaryFailures(t *testing.T) {
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

// If a service stays broken, the store gives up with the right code. A call whose ctx
// ends stops retrying.
func TestLastingFailures(t *testing.T) {
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

// A stalled connection is dropped and replaced by a new one.
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

// A download continues after its connection was dropped, but not on another object.
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
		t.Errorf("a read of an object that was replaced: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
