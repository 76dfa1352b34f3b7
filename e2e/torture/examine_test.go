package torture_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// record is what the children on one directory have reported so far.
type record struct {
	places
	kills    int
	saved    map[string]bool  // IDs that must be there
	deleting map[string]bool  // IDs that may be there
	defaults map[string]int64 // minimum version of each user's default
}

func newRecord(in places) *record {
	return &record{places: in, saved: map[string]bool{}, deleting: map[string]bool{}, defaults: map[string]int64{}}
}

func (r *record) take(events []event) {
	r.kills++
	for _, e := range events {
		switch e.Did {
		case "saved":
			r.saved[e.ID] = true
			r.defaults[e.User] = max(r.defaults[e.User], e.Version)
		case "deleting":
			delete(r.saved, e.ID)
			r.deleting[e.ID] = true
		}
	}
}

// tally counts what was checked.
type tally struct {
	Saved, Deleted int // that the children reported; a kill may have interrupted a delete
	Verified       int // snapshots in the catalogue, summed over all examinations
	Latest         int // latest snapshots of locations, summed over all examinations
	// Unnamed is documents without a record, and Archives is archives without a
	// document: the largest numbers that one directory had.
	Unnamed, Archives int
}

func (a *tally) add(b tally) {
	a.Verified, a.Latest = a.Verified+b.Verified, a.Latest+b.Latest
	a.Unnamed, a.Archives = max(a.Unnamed, b.Unnamed), max(a.Archives, b.Archives)
}

// examine opens the directory as the next daemon does, and checks everything in it.
func (r *record) examine(t *testing.T) (seen tally) {
	t.Helper()
	s, err := openStorage(t.Context(), r.places)
	if err != nil {
		t.Fatalf("cannot open the directory after the kill: %v", err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	s.recover(t)
	rows, _, err := s.catalogue.Snapshots.Snapshots(t.Context(), profiles.SnapshotFilter{})
	if err != nil {
		t.Fatal(err)
	}
	seen.Verified = len(rows)
	named := map[string]bool{}
	for _, row := range rows {
		named[row.ID] = true
		s.verifyWhole(t, row)
	}
	for id := range r.saved {
		if !named[id] {
			t.Errorf("snapshot %s was reported as saved and is missing", id)
		}
	}
	for user, version := range r.defaults {
		now, err := s.catalogue.Defaults.Default(t.Context(), user)
		if version == 0 && fault.Is(err, fault.DefaultNotFound) {
			continue
		}
		if err != nil || now.Version < version || !named[now.SnapshotID] {
			t.Errorf("the default of %s is %+v, %v; want at least version %d", user, now, err, version)
		}
	}
	s.checkPlaces(t, r, named, &seen)
	r.checkLeftovers(t, seen)
	return seen
}

// recover does what a start does with the sessions that it finds live
// (session/recover.go), except for rescuing their Chromes.
func (s *storage) recover(t *testing.T) {
	t.Helper()
	live, _, err := s.catalogue.Sessions.Sessions(t.Context(), profiles.SessionFilter{Live: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range live {
		err := s.vault.RemoveUncommitted(t.Context(), locationOf(rec.UserID, rec.ID), func(id string) (bool, error) {
			_, err := s.catalogue.Snapshots.Snapshot(t.Context(), id)
			if fault.Is(err, fault.SnapshotNotFound) {
				return false, nil
			}
			return err == nil, err
		})
		if err == nil {
			err = s.catalogue.Sessions.EndSession(t.Context(), profiles.End{SessionID: rec.ID, Status: profiles.StatusTerminated, EndedAt: time.Now()})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// verifyWhole verifies a snapshot in the catalogue, including its tar.
func (s *storage) verifyWhole(t *testing.T, row profiles.Snapshot) {
	t.Helper()
	saved, err := s.vault.Open(t.Context(), locationOf(row.UserID, row.SessionID), row.ID)
	if err != nil {
		t.Error(err)
		return
	}
	files, err := s.vault.Peek(t.Context(), saved, state.FileName)
	if err != nil {
		t.Error(err)
		return
	}
	var doc struct{ Of string }
	if err := json.Unmarshal(files[state.FileName], &doc); err != nil || doc.Of != row.ID && doc.Of != "all" || saved.Archive.ID != row.ArchiveID {
		t.Errorf("%s holds the state of %q in archive %s, %v", row.ID, doc.Of, saved.Archive.ID, err)
	}
}

// checkPlaces walks the store. Each document must parse, and each latest snapshot must load
// and be whole, unless a kill interrupted its delete.
func (s *storage) checkPlaces(t *testing.T, r *record, named map[string]bool, seen *tally) {
	t.Helper()
	all, err := snapshot.Locations(t.Context(), s.store)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, loc := range all {
		ids, _, err := s.vault.List(t.Context(), loc, 1000, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			saved, err := s.vault.Open(t.Context(), loc, id)
			if err != nil {
				t.Error(err)
				continue
			}
			used[saved.Archive.ID] = true
			if !named[id] {
				seen.Unnamed++
			}
		}
		latest, err := s.vault.Latest(t.Context(), loc)
		if err == nil && !r.deleting[latest.ID] {
			err = s.vault.Verify(t.Context(), latest)
		}
		if err != nil && !fault.Is(err, fault.SnapshotNotFound) {
			t.Errorf("latest of %s: %v (named %v)", loc.Session, err, named[latest.ID])
		}
		if fault.Is(err, fault.SnapshotNotFound) {
			for _, id := range ids {
				if named[id] {
					t.Errorf("%s has snapshot %s but no latest one", loc.Session, id)
				}
			}
		}
	}
	seen.Latest = len(all)
	archives, err := s.store.List(t.Context(), snapshot.ArchiveFolder(), 1<<20, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range archives {
		if !used[id] {
			seen.Archives++
		}
	}
}

// checkLeftovers checks what the kills have left: per kill, no more than each writer was
// working on, and no temporary file, because the start removes them.
func (r *record) checkLeftovers(t *testing.T, seen tally) {
	t.Helper()
	if most := writers * r.kills; seen.Unnamed > most || seen.Archives > most {
		t.Errorf("after %d kills there is too much left: %+v", r.kills, seen)
	}
	if r.Bucket != nil {
		return // unfinished uploads have no name in a bucket
	}
	left, err := os.ReadDir(filepath.Join(r.Dir, "snapshots/tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

// clear checks and repairs the store like `stasis store check`. Afterwards nothing must
// be left over, and nothing may be lost.
func (r *record) clear(t *testing.T) {
	t.Helper()
	s, err := openStorage(t.Context(), r.places)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, repair := range []bool{true, false} {
		_, err := audit.Run(t.Context(), s.vault, s.records(), time.Now, audit.Options{ReadData: true, Repair: repair, Remove: repair},
			func(f audit.Finding) error {
				if !repair || f.Severity == audit.Lost {
					t.Errorf("with repair %v: %s %s: %s", repair, f.Severity, f.Kind, f.What)
				}
				return nil
			})
		if err != nil {
			t.Error(err)
		}
	}
}
