package session

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/snapshot"
)

// A start logs that catalogue, store and keys do not match, and continues.
func TestStartLogsMismatch(t *testing.T) {
	r := newRig(t, nil)
	r.saved(alice, filesystem)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for want, keys := range map[string]snapshot.Keys{
		"":                                    r.keys,
		"archive-key is probably not the one": snapshot.NewKeys(r.identity, [32]byte{2}),
	} {
		r.keys = keys
		next := r.daemon(nil)
		var log bytes.Buffer
		next.deps.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		if err := recovered(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if err := next.Close(t.Context()); err != nil { // its background work also writes to the log
			t.Fatal(err)
		}
		logged := log.String()
		// The janitor may log that it was stopped. Only a mismatch logs what to do.
		if want == "" && (strings.Contains(logged, " do=") || strings.Contains(logged, "belong together")) {
			t.Errorf("the log is %s", logged)
		}
		if !strings.Contains(logged, want) {
			t.Errorf("no %q in %s", want, logged)
		}
	}
}

// After the loss of a catalogue, an archive is imported as it is in the store.
func TestImportArchiveFromStore(t *testing.T) {
	r := newRig(t, nil)
	_, snap := r.saved(alice, filesystem)
	row, err := r.catalogue.Snapshot(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	key, err := snapshot.ArchiveKey(row.ArchiveID)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := r.store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.Import(t.Context(), alice, importer.Request{Format: library.FormatStasis}, archive)
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	r.create(alice, func(c *request.Create) { c.FromEnvironment = a.Snapshot.ID })
}
