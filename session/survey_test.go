package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
