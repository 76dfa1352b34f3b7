package session

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// savedDocument ends a session and gives the document that its snapshot has.
func (r *rig) savedDocument(id string) (state.Document, EndAnswer) {
	r.t.Helper()
	a, err := r.End(r.t.Context(), alice, id, filesystem)
	if err != nil {
		r.t.Fatal(err)
	}
	saved, err := r.Vault.Open(r.t.Context(), locationOf("alice", id), a.Snapshot.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	files, err := r.Vault.Peek(r.t.Context(), saved, state.FileName)
	if err != nil {
		r.t.Fatal(err)
	}
	var doc state.Document
	if err := json.Unmarshal(files[state.FileName], &doc); err != nil {
		r.t.Fatal(err)
	}
	return doc, a
}

// A document says that something is from the disk only where it was read
// there: of a store that cannot be read it keeps the reading from before, and
// an uploaded document's word does not count. What CDP could not read and
// Chrome closed well is in the profile, and is not called lost.
func TestFromDiskIsWhatWasReadThere(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	c := r.browsers.last()
	const reason = "it is too large"
	c.reads = func(doc *state.Document) {
		doc.FromDisk = []string{state.ComponentCookies}
		doc.Missed = []state.Missed{{Component: state.ComponentLocalStorage, Origin: "https://b.example/", Reason: reason}}
	}
	if err := os.WriteFile(filepath.Join(c.dir.Profile(), "Default/Cookies"), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, answer := r.savedDocument(id)
	if doc.Inventory == nil || len(doc.FromDisk) != 0 || len(doc.Cookies) != 1 {
		t.Errorf("of a jar that cannot be read: %+v", doc)
	}
	warned := strings.Join(answer.Snapshot.Warnings, "\n")
	if !strings.Contains(warned, "is in the profile alone, which Chrome closed: "+reason) || strings.Contains(warned, "was not saved") {
		t.Errorf("the warnings: %s", warned)
	}
}

// However much is on the disk, the document stays one that a restore takes:
// what does not fit is left out of it, the counts last.
func TestSmallest(t *testing.T) {
	large := strings.Repeat("x", snapshot.MaxKept)
	doc := func(value, damage string) state.Document {
		return state.Document{Local: []state.Area{{Items: []state.Item{{Value: value}}}}, Inventory: state.Inventory{{Damage: damage}}}
	}
	for name, test := range map[string]struct {
		best, counted, last, want state.Document
	}{
		"all fits":       {doc("best", ""), doc("counted", ""), doc("last", ""), doc("best", "")},
		"storage is too": {doc(large, ""), doc("counted", ""), doc("last", ""), doc("counted", "")},
		"counts are too": {doc(large, ""), doc("counted", large), state.Document{}, state.Document{Inventory: uncounted("its counts would not fit into the document")}},
	} {
		if diff := cmp.Diff(test.want, smallest(test.best, test.counted, test.last)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A profile waits for its turn to be counted; where the daemon stops first, it
// is saved uncounted.
func TestSurveysAreFew(t *testing.T) {
	r := newRig(t, nil)
	for range maxSurveys {
		r.surveys <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	doc := r.survey(ctx, job{}, state.Document{Datadir: state.DatadirClean, FromDisk: []string{state.ComponentCookies}})
	if len(doc.FromDisk) != 0 || len(doc.Inventory) != 1 || doc.Inventory[0].Uncounted == "" {
		t.Errorf("%+v", doc)
	}
}
