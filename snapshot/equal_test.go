package snapshot_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// Equal contents of one owner are stored once, and stay while a snapshot uses them. The
// archives of two owners have different names.
func TestEqualArchives(t *testing.T) {
	v, store := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a, b := save(t, v, draft(1, entry)), save(t, v, draft(2, entry))
	if a.Archive != b.Archive {
		t.Errorf("archives differ: %+v, %+v", a.Archive, b.Archive)
	}
	foreign := draft(3, entry)
	foreign.Location.Owner = strings.Repeat("f", 32)
	if c := save(t, v, foreign); c.Archive.ID == a.Archive.ID {
		t.Error("two owners' archives have one name")
	}
	count := func() int {
		names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 10, "")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if n := count(); n != 2 {
		t.Errorf("%d archives, want 2", n)
	}
	// The catalogue may not have the second snapshot yet, so its archive must stay.
	if err := v.Delete(t.Context(), place, a.ID, storetest.NotInUse); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context(), b); err != nil {
		t.Errorf("the other snapshot lost its archive: %v", err)
	}
	if err := v.Delete(t.Context(), place, b.ID, storetest.NotInUse); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1 {
		t.Errorf("%d archives, want the foreign one", n)
	}
	if err := v.Delete(t.Context(), place, b.ID, storetest.NotInUse); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("a second delete: %v", err)
	}
}

// An undone save leaves an archive that existed before it.
func TestUndoneSaveKeepsArchive(t *testing.T) {
	v, _ := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a, b := save(t, v, draft(1, entry)), save(t, v, draft(2, entry))
	if a.Shared || !b.Shared {
		t.Fatalf("shared: first %v, second %v", a.Shared, b.Shared)
	}
	if err := v.Delete(t.Context(), place, b.ID, func(_ context.Context, id string) (bool, error) { return id == a.Archive.ID, nil }); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context(), a); err != nil {
		t.Errorf("the first snapshot: %v", err)
	}
}

// A delete that was decided before an equal snapshot was committed leaves its archive.
// The vault asks the catalogue while no save can adopt the archive.
func TestDeleteAsksInUseUnderLock(t *testing.T) {
	v, _ := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a := save(t, v, draft(1, entry))
	v.MarkCommitted(a)
	b := save(t, v, draft(2, entry)) // a's record is deleted here, and b has none yet
	v.MarkCommitted(b)
	known := func(_ context.Context, id string) (bool, error) { return id == b.Archive.ID, nil }
	if err := v.Delete(t.Context(), place, a.ID, known); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context(), b); err != nil {
		t.Errorf("the snapshot that was committed in between: %v", err)
	}
}

// The archive stays if the snapshot that shares it is deleted before the snapshot that
// created it is committed.
func TestDeleteBeforeFirstIsCommitted(t *testing.T) {
	v, _ := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a, b := save(t, v, draft(1, entry)), save(t, v, draft(2, entry))
	v.MarkCommitted(b)
	if err := v.Delete(t.Context(), place, b.ID, storetest.NotInUse); err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(t.Context(), a); err != nil {
		t.Errorf("the snapshot that is not committed yet: %v", err)
	}
}

// A save over an equal, damaged archive repairs it.
func TestDamagedEqualArchiveIsReplaced(t *testing.T) {
	v, store := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a := save(t, v, draft(1, entry))
	key, err := snapshot.ArchiveKey(a.Archive.ID)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, store, key, []byte("rubbish"))
	b := save(t, v, draft(2, entry))
	if err := v.Verify(t.Context(), b); err != nil {
		t.Errorf("the new snapshot: %v", err)
	}
	if err := v.Verify(t.Context(), a); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("the old snapshot: %v, want archive_damaged", err)
	}
}
