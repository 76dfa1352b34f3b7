package session

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// extensionZip returns the zip of an extension with this name and version.
func extensionZip(t *testing.T, name, version string) *bytes.Reader {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	f, err := w.Create("manifest.json")
	if err == nil {
		_, err = f.Write([]byte(`{"manifest_version": 3, "name": "` + name + `", "version": "` + version + `"}`))
	}
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(out.Bytes())
}

func (r *rig) uploadExtension(c access.Caller, name, version string) library.Extension {
	r.t.Helper()
	e, _, err := r.uploaded.PutExtension(r.t.Context(), c, extensionZip(r.t, name, version))
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// same reports whether an extension's files are unchanged.
func same(t *testing.T, dir *browser.Dir, e state.Extension) bool {
	t.Helper()
	is, err := extension.Matches(t.Context(), browser.ExtensionDir(dir, e.ID), e.ID, e.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func (r *rig) stored() int {
	entries, err := os.ReadDir(r.extensions)
	if err != nil {
		r.t.Fatal(err)
	}
	return len(entries)
}

// Only the user who uploaded an extension, and keys that may act for every user, can use
// it. For others it does not exist.
func TestExtensionOwnership(t *testing.T) {
	r := newRig(t, nil)
	e := r.uploadExtension(alice, "Night", "1")
	again, fresh, err := r.uploaded.PutExtension(t.Context(), alice, extensionZip(t, "Night", "1"))
	if err != nil || fresh || again != e {
		t.Errorf("again: %+v %t %v", again, fresh, err)
	}
	if got, err := r.uploaded.Extension(t.Context(), alice, e.ID); err != nil || got != e {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := r.uploaded.Extension(t.Context(), admin, e.ID); err != nil || got != e {
		t.Errorf("the admin gets %+v %v", got, err)
	}
	if _, err := r.uploaded.Extension(t.Context(), bob, e.ID); !fault.Is(err, fault.ExtensionNotFound) {
		t.Errorf("bob gets %v", err)
	}
	if list, err := r.uploaded.ListExtensions(t.Context(), bob); err != nil || len(list) != 0 {
		t.Errorf("bob lists %v %v", list, err)
	}
	if err := r.uploaded.DeleteExtension(t.Context(), bob, e.ID, true); !fault.Is(err, fault.ExtensionNotFound) {
		t.Errorf("bob deletes: %v", err)
	}
	_, err = r.Create(t.Context(), bob, newCreate(func(c *request.Create) { c.Extensions = []string{e.ID} }))
	if !fault.Is(err, fault.ExtensionNotFound) || !strings.Contains(fault.MessageOf(err), e.ID) {
		t.Errorf("bob creates with it: %v", err)
	}
	_, err = r.Create(t.Context(), admin, newCreate(func(c *request.Create) { c.UserID, c.Extensions = "carol", []string{e.ID} }))
	if !fault.Is(err, fault.ExtensionNotFound) {
		t.Errorf("the admin gives carol what alice uploaded: %v", err)
	}
	if _, _, err := r.uploaded.PutExtension(t.Context(), access.Caller{UserID: "alice"}, extensionZip(t, "Night", "1")); !fault.Is(err, fault.Forbidden) {
		t.Errorf("without the right: %v", err)
	}
	r.uploadExtension(bob, "Night", "1")
	if n := r.stored(); n != 1 {
		t.Errorf("the same files are stored %d times", n)
	}
	r.uploadExtension(alice, "Night", "2")
	if err := r.uploaded.DeleteExtension(t.Context(), bob, e.ID, false); err != nil {
		t.Error(err)
	}
	if n := r.stored(); n != 1 {
		t.Errorf("%d are stored, want the one that is named", n)
	}
}

// A snapshot holds its extensions' own files and restores them, whatever happened to the
// upload. A create that names an extension gets the newest version.
func TestExtensionsOfASnapshot(t *testing.T) {
	r := newRig(t, nil)
	e := r.uploadExtension(alice, "Night", "1")
	with := func(c *request.Create) { c.Extensions = []string{e.ID} }
	id := r.create(alice, with).ID
	first := r.browsers.last()
	if got := first.options.Extensions; len(got) != 1 || got[0].ID != e.ID || got[0].SHA256 != e.SHA256 || !got[0].Enabled {
		t.Fatalf("the Chrome has %+v", got)
	}
	if body, err := os.ReadFile(filepath.Join(browser.ExtensionDir(first.dir, e.ID), "manifest.json")); err != nil || !strings.Contains(string(body), "Night") {
		t.Fatalf("its files: %s %v", body, err)
	}
	// Files in the folder that were not uploaded are not saved.
	stranger := browser.ExtensionDir(first.dir, strings.Repeat("p", 32))
	if err := os.MkdirAll(stranger, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stranger, "manifest.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := r.end(alice, id, request.End{Mode: save.Memory})
	if err := r.uploaded.DeleteExtension(t.Context(), alice, e.ID, false); !fault.Is(err, fault.ExtensionInUse) {
		t.Errorf("deleted while in use: %v", err)
	}
	if err := r.uploaded.DeleteExtension(t.Context(), alice, e.ID, true); err != nil || r.stored() != 0 {
		t.Errorf("forced: %v, %d left", err, r.stored())
	}
	back := r.create(alice, func(c *request.Create) { c.FromSession = id; c.AllowMemory = false })
	restored := r.browsers.last()
	if got := restored.options.Extensions; len(got) != 1 || got[0].SHA256 != e.SHA256 || !same(t, restored.dir, got[0]) {
		t.Errorf("restored %+v", got)
	}
	if _, err := os.Stat(browser.ExtensionDir(restored.dir, strings.Repeat("p", 32))); err == nil {
		t.Error("a file that was not uploaded was restored")
	}
	r.end(alice, back.ID, request.End{Mode: save.None})

	next := r.uploadExtension(alice, "Night", "2")
	newer := r.create(alice, func(c *request.Create) { c.FromEnvironment = a.Snapshot.ID; with(c) })
	if got := r.browsers.last().options.Extensions; len(got) != 1 || got[0].Version != "2" || got[0].SHA256 != next.SHA256 || !same(t, r.browsers.last().dir, got[0]) {
		t.Errorf("with the newest %+v", got)
	}
	if newer.Restored.Path != restore.PathCold || !strings.Contains(newer.Restored.FallbackReason, e.ID) {
		t.Errorf("%+v", newer.Restored)
	}
	parked := r.create(alice, func(c *request.Create) { c.FromSession = id })
	if parked.Restored.Path != restore.PathParked {
		t.Errorf("%+v", parked.Restored)
	}
	r.end(alice, parked.ID, filesystem)
	pinned, err := r.deps.Catalogue.SnapshotExtensions(t.Context(), a.Snapshot.ID)
	if err != nil || len(pinned) != 1 || pinned[0].SHA256 != e.SHA256 {
		t.Errorf("pinned %+v %v", pinned, err)
	}
}

// An extension whose files Chrome has changed is not saved, and the save reports it.
func TestChangedExtensions(t *testing.T) {
	r := newRig(t, nil)
	e := r.uploadExtension(alice, "Night", "1")
	id := r.create(alice, func(c *request.Create) { c.Extensions = []string{e.ID} }).ID
	at := browser.ExtensionDir(r.browsers.last().dir, e.ID)
	if err := os.WriteFile(filepath.Join(at, "more.js"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := r.end(alice, id, filesystem)
	if text := strings.Join(a.Snapshot.Warnings, "\n"); !strings.Contains(text, e.ID) || !strings.Contains(text, "files changed") {
		t.Errorf("warnings: %s", text)
	}
	if pinned, err := r.deps.Catalogue.SnapshotExtensions(t.Context(), a.Snapshot.ID); err != nil || len(pinned) != 0 {
		t.Errorf("pinned %+v %v", pinned, err)
	}
}

// switchOff disables the extension in a Chrome's profile.
func switchOff(t *testing.T, dir *browser.Dir, id string) {
	t.Helper()
	prefs := `{"extensions":{"settings":{"` + id + `":{"path":"` + browser.ExtensionDir(dir, id) + `","disable_reasons":[1]}}}}`
	if err := os.WriteFile(filepath.Join(dir.Profile(), profile.Default, "Preferences"), []byte(prefs), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a dead Chrome or daemon left is saved and restored with its extensions. A disabled
// extension, which only the profile knows, stays disabled.
func TestExtensionsOfTheDead(t *testing.T) {
	r := newRig(t, nil)
	e := r.uploadExtension(alice, "Night", "1")
	with := func(c *request.Create) { c.Extensions = []string{e.ID} }
	crashed := r.create(alice, with).ID
	switchOff(t, r.browsers.last().dir, e.ID)
	r.browsers.last().die()
	r.ended(crashed)
	killed := r.create(alice, with).ID
	chrome := r.browsers.last()
	switchOff(t, chrome.dir, e.ID)
	r.browsers.on("capture", func(c *fakeChrome) error {
		<-c.done // a page that never answers, until Chrome is killed
		return errBroken
	})
	r.browsers.on("restored", func(*fakeChrome) error { return errBroken })
	context.AfterFunc(r.ctx, chrome.die) // a capture ends with its context
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Fatal(err)
	}
	r.browsers.works()
	next := r.daemon(nil)
	if err := recovered(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{crashed, killed} {
		r.ended(id)
		row, err := r.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil || row.Datadir != "crash" {
			t.Fatalf("%+v %v", row, err)
		}
		if pinned, err := r.catalogue.SnapshotExtensions(t.Context(), row.ID); err != nil || len(pinned) != 1 || pinned[0].SHA256 != e.SHA256 {
			t.Errorf("pinned %+v %v", pinned, err)
		}
		back, err := next.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession = id }))
		if err != nil {
			t.Fatal(err)
		}
		if lost := "extension_storage chrome-extension://" + e.ID + " was not saved"; !strings.Contains(strings.Join(back.Restored.Warnings, "\n"), lost) {
			t.Errorf("warnings about extension storage: %q", back.Restored.Warnings)
		}
		if got := r.browsers.last().options.Extensions; len(got) != 1 || got[0].SHA256 != e.SHA256 || got[0].Enabled {
			t.Errorf("restored with %+v", got)
		}
	}
}
