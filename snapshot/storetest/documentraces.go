package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// documentRace checks that one of ten writers of an ID wins completely, and that latest
// is the winner's.
func documentRace(t *testing.T, _ snapshot.Store, d *snapshot.Documents) {
	words := func(i int) string { return strings.Repeat(string(rune('a'+i)), 10_000) }
	var wg sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		wg.Go(func() { errs[i] = d.Save(t.Context(), desk, id(1), agentDocument(words(i)), true) })
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner < 0:
			winner = i
		case !fault.Is(err, fault.SnapshotExists):
			t.Errorf("writer %d: %v, want snapshot_exists", i, err)
		}
	}
	if winner < 0 {
		t.Fatal("no writer won")
	}
	wantDocument(t, d, id(1), words(winner))
	wantDocument(t, d, snapshot.LatestID, words(winner))
}

// latestRace checks that ten writers of latest leave one of their documents. A concurrent
// reader always sees a complete document.
func latestRace(t *testing.T, _ snapshot.Store, d *snapshot.Documents) {
	save(t, d, snapshot.LatestID, "x", false)
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if err := d.Save(t.Context(), desk, id(i), agentDocument(strings.Repeat(fmt.Sprint(i), 5000)), true); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := d.Load(t.Context(), desk, snapshot.LatestID); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	last := must[[]byte](t)(d.Load(t.Context(), desk, snapshot.LatestID))
	for i := range 10 {
		if string(must[[]byte](t)(d.Load(t.Context(), desk, id(i)))) == string(last) {
			return
		}
	}
	t.Errorf("latest is from none of the writers: %.200s", last)
}
