package session

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// If a snapshot's state document is missing or has wrong types, the error names the
// snapshot and the problem but no value. Nothing is started.
func TestSnapshotWithoutAReadableDocument(t *testing.T) {
	r := newRig(t, nil)
	id, good := r.saved(alice, filesystem)
	row, err := r.catalogue.Snapshot(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ document, says string }{
		"missing":     {"", "its archive has no state.json"},
		"not JSON":    {"{", "state.json is not JSON"},
		"wrong types": {`{"schema_version": "1", "cookies": [{"value": 31337}]}`, "state.json: cookies.value has the wrong type"},
		"no object":   {`[31337]`, "has the wrong type"},
	} {
		entries := []snapshot.Entry{{Name: "Default/Preferences", Data: []byte("{}"), Mode: 0o600}}
		if test.document != "" {
			entries = append(entries, snapshot.Entry{Name: state.FileName, Data: []byte(test.document), Mode: 0o600})
		}
		saved, err := r.deps.Vault.Save(t.Context(), snapshot.Draft{ID: profiles.NewID(), Location: library.LocationOf(row.UserID, id), Mode: snapshot.Filesystem,
			CreatedAt: row.CreatedAt, Entries: entries, Facts: map[string]any{}, Private: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		bad := row
		bad.ID, bad.ArchiveID, bad.SizeBytes = saved.ID, saved.Archive.ID, saved.Archive.StoredSize
		if _, err := r.catalogue.Commit(t.Context(), profiles.Commit{Snapshot: bad}); err != nil {
			t.Fatal(err)
		}
		_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromEnvironment = saved.ID }))
		if fault.CodeOf(err) != fault.ArchiveDamaged || !strings.Contains(err.Error(), saved.ID) || !strings.Contains(err.Error(), test.says) ||
			strings.Contains(err.Error(), "31337") {
			t.Errorf("%s: %v", name, err)
		}
		if n := r.dirs(); n != 0 {
			t.Errorf("%s: %d run directories are left", name, n)
		}
	}
}
