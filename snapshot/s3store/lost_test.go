package s3store_test

import (
	"net/http"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot/s3store"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// A write that was done but whose response was lost counts as done. A write of another
// writer does not.
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
	p.Plan(lose) // every time, so that only a read can find out
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

	// Another writer writes between a write and its retry.
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
	// The write was done, and another writer has seen it. If Swap returned false, the
	// caller would write it twice.
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
