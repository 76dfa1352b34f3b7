package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/browser/profile/profiletest"
	"github.com/stasisd/stasis/browser/profile/sessionstorage"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// savedDocument ends a session and returns its snapshot's document.
func (r *rig) savedDocument(id string) (state.Document, save.EndAnswer) {
	r.t.Helper()
	a, err := r.End(r.t.Context(), alice, id, filesystem)
	if err != nil {
		r.t.Fatal(err)
	}
	saved, err := r.deps.Vault.Open(r.t.Context(), library.LocationOf("alice", id), a.Snapshot.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	files, err := r.deps.Vault.Peek(r.t.Context(), saved, state.FileName)
	if err != nil {
		r.t.Fatal(err)
	}
	var doc state.Document
	if err := json.Unmarshal(files[state.FileName], &doc); err != nil {
		r.t.Fatal(err)
	}
	return doc, a
}

// A document marks data as read from disk only if it was read there. If a database cannot
// be read, the document keeps the earlier reading. An uploaded document's mark does not
// count. What CDP could not read is looked up in the closed profile.
func TestFromDiskMark(t *testing.T) {
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
		t.Errorf("with an unreadable cookie database: %+v", doc)
	}
	warned := strings.Join(answer.Snapshot.Warnings, "\n")
	if !strings.Contains(warned, "could not be read and is not in the profile, which Chrome closed: "+reason) || strings.Contains(warned, "was not saved") {
		t.Errorf("the warnings: %s", warned)
	}
}

// What Chrome had not written when it ended stays in the document as it was read, and the
// answer names it. An uploaded document cannot claim that itself.
func TestUnwrittenLocalStorageIsNamed(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	area := state.Area{StorageKey: "https://big.example/", Items: []state.Item{{Key: "k", Value: "v"}}}
	r.browsers.last().reads = func(doc *state.Document) {
		doc.Local, doc.Unwritten = []state.Area{area}, []string{"https://forged.example/"}
	}
	doc, answer := r.savedDocument(id)
	if diff := cmp.Diff([]string{area.StorageKey}, doc.Unwritten); diff != "" || len(doc.Local) != 1 || len(doc.Local[0].Items) != 1 {
		t.Errorf("%+v (-want +got):\n%s", doc.Local, diff)
	}
	warned := strings.Join(answer.Snapshot.Warnings, "\n")
	if !strings.Contains(warned, "local_storage https://big.example/ was read before Chrome closed") || strings.Contains(warned, "forged") {
		t.Errorf("the warnings: %s", warned)
	}
	only, _ := state.Selection{Exclude: []string{"https://big.example"}}.Document(doc)
	if len(only.Unwritten) != 0 || len(doc.WithoutDatadir().Unwritten) != 0 {
		t.Errorf("an origin that was left out is still named: %v", only.Unwritten)
	}
}

// What Chrome had not written when it was closed is also reported and applied when Chrome
// is reopened after a failed save.
func TestUnwrittenIsAppliedWhenReopened(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	area := state.Area{StorageKey: "https://big.example/", Items: []state.Item{{Key: "k", Value: "v"}}}
	r.browsers.last().reads = func(doc *state.Document) { doc.Local = []state.Area{area} }
	r.catalogue.fails(errBroken, "Commit")
	if _, err := r.End(t.Context(), alice, id, filesystem); err == nil {
		t.Fatal("the save did not fail")
	}
	r.catalogue.works()
	if diff := cmp.Diff([]string{area.StorageKey}, r.browsers.last().restored.Unwritten); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	report, err := r.RestoreReport(t.Context(), alice, id)
	if err != nil || !strings.Contains(strings.Join(report.Warnings, "\n"), "local_storage https://big.example/ was read before Chrome closed") {
		t.Errorf("%+v, %v", report, err)
	}
}

// A write that a dead Chrome did not finish is reported, because nothing was read before.
// So is the localStorage of a page that could not be read and is not on disk.
func TestUnfinishedWriteAndUnreadPage(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	userDataDir := r.browsers.last().dir.Profile()
	onDisk := profiletest.Profile{T: t, Folder: filepath.Join(userDataDir, profile.Default)}
	onDisk.LocalStorage(r.clock.now(), state.Area{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}}})
	doc := state.Document{Datadir: state.DatadirClean, Missed: []state.Missed{{Component: state.ComponentLocalStorage, Origin: "https://a.example/x", Reason: "r"},
		{Component: state.ComponentLocalStorage, Origin: "https://b.example/x", Reason: "r"}}}
	found, err := profile.Inspect(t.Context(), userDataDir, doc)
	if err != nil {
		t.Fatal(err)
	}
	if got := state.CaptureWarnings(found.WithLosses); !strings.Contains(got[0], "https://a.example/x is saved only in the profile") {
		t.Errorf("unfinished write, areas not in the document: %q", got)
	}
	if got := state.CaptureWarnings(found.Document); len(got) != 1 || !strings.Contains(got[0], "https://b.example/x could not be read and is not in the profile, which Chrome closed") {
		t.Errorf("unread pages: %q", got)
	}
	onDisk.Truncate(localstorage.Folder)
	r.browsers.last().die()
	r.ended(id)
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if got := strings.Join(library.ReportOf(row).Warnings, "\n"); err != nil || !strings.Contains(got, "local_storage is incomplete: Chrome ended during its last write") {
		t.Errorf("dead Chrome: %s, %v", got, err)
	}
}

// SessionStorage of the tabs that is not on disk is reported with its size and whether it
// is restored. An unfinished write that belongs to no known area is reported too. Tabs
// that are reopened by URL have theirs from the document.
func TestUnstoredSessionStorage(t *testing.T) {
	doc := state.Document{Datadir: state.DatadirClean, Tabs: []state.Tab{{Session: []state.Area{
		{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}, {Key: "l", Value: "v"}}}}}}}
	nothing, cut := t.TempDir(), t.TempDir()
	for _, dir := range []string{nothing, cut} {
		if err := os.Mkdir(filepath.Join(dir, profile.Default), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	torn := profiletest.Profile{T: t, Folder: filepath.Join(cut, profile.Default)}
	torn.SessionStorage(state.Area{StorageKey: "https://b.example/", Items: []state.Item{{Key: "k", Value: "v"}}})
	torn.Truncate(sessionstorage.Folder)
	compared := func(dir string) state.Document { return profile.Compare(t.Context(), dir, doc) }
	const told = "session_storage https://a.example/: 2 items that were read before Chrome closed are not on disk; "
	for want, dir := range map[string]string{
		told + "they are lost, unless the site itself cleared them": nothing, told + "a restore writes the items that were read": cut} {
		if got := state.CaptureWarnings(compared(dir)); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	doc.TabsByURL = true
	if got := compared(cut); len(got.Unstored) != 0 || len(got.Missed) != 0 {
		t.Errorf("tabs opened by URL: %+v", got)
	}
	doc.TabsByURL, doc.Tabs = false, nil
	if got := state.CaptureWarnings(compared(cut)); len(got) != 1 || !strings.Contains(got[0], "session_storage is incomplete: ") {
		t.Errorf("write of no known area: %q", got)
	}
}
