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

// record is what the children on one directory have said so far.
type record struct {
	places
	kills    int
	saved    map[string]bool  // IDs that must be there
	deleting map[string]bool  // IDs that may be there
	defaults map[string]int64 // a user's version, at least
}

func newRecord(in places) *record {
	return &record{places: in, saved: map[string]bool{}, deleting: map[string]bool{}, defaults: map[string]int64{}}
}

func (r *record) take(told []event) {
	r.kills++
	for _, e := range told {
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

// tally counts what was looked at.
type tally struct {
	Saved, Deleted int // that the children told of; a delete may have been cut short
	Verified       int // snapshots that the catalogue named, at each examination
	Latest         int // of locations, at each examination
	// Unnamed and Archives are documents that no record names, and archives that
	// no document names: the most that one directory had.
	Unnamed, Archives int
}

func (a *tally) add(b tally) {
	a.Verified, a.Latest = a.Verified+b.Verified, a.Latest+b.Latest
	a.Unnamed, a.Archives = max(a.Unnamed, b.Unnamed), max(a.Archives, b.Archives)
}

// examine opens the directory as the next daemon does, and looks at all of it.
func (r *record) examine(t *testing.T) (seen tally) {
	t.Helper()
	s, err := openStorage(t.Context(), r.places)
	if err != nil {
		t.Fatalf("the next start: %v", err)
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
		s.whole(t, row)
	}
	for id := range r.saved {
		if !named[id] {
			t.Errorf("%s was said to be saved, and is not there", id)
		}
	}
	for user, version := range r.defaults {
		now, err := s.catalogue.Defaults.Default(t.Context(), user)
		if version == 0 && fault.Is(err, fault.DefaultNotFound) {
			continue
		}
		if err != nil || now.Version < version || !named[now.SnapshotID] {
			t.Errorf("the default of %s is %+v, %v; it was at version %d", user, now, err, version)
		}
	}
	s.places(t, r, named, &seen)
	r.leftovers(t, seen)
	return seen
}

// recover does what a start does with the sessions that it finds live, but for
// rescuing their Chromes (session/recover.go).
func (s *storage) recover(t *testing.T) {
	t.Helper()
	live, _, err := s.catalogue.Sessions.Sessions(t.Context(), profiles.SessionFilter{Live: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range live {
		err := s.vault.TakeBack(t.Context(), locationOf(rec.UserID, rec.ID), func(id string) (bool, error) {
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

// whole checks a snapshot that the catalogue names down to the tar.
func (s *storage) whole(t *testing.T, row profiles.Snapshot) {
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
		t.Errorf("%s holds what was saved of %q in archive %s, %v", row.ID, doc.Of, saved.Archive.ID, err)
	}
}

// places walks the store: each document parses, each latest loads and is whole,
// but for one whose delete was cut short.
func (s *storage) places(t *testing.T, r *record, named map[string]bool, seen *tally) {
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
					t.Errorf("%s has %s and no latest", loc.Session, id)
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

// leftovers bounds what the kills have left: no more than each writer had in
// hand each time, and no temporary file, for the start has removed them.
func (r *record) leftovers(t *testing.T, seen tally) {
	t.Helper()
	if most := writers * r.kills; seen.Unnamed > most || seen.Archives > most {
		t.Errorf("after %d kills there are %+v", r.kills, seen)
	}
	if r.Bucket != nil {
		return // what was on its way has no name
	}
	left, err := os.ReadDir(filepath.Join(r.Dir, "snapshots/tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

// clear checks and repairs as stasis store check does, after which nothing is
// left over; that nothing is lost it has to find by itself.
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
					t.Errorf("repairing %v: %s %s: %s", repair, f.Severity, f.Kind, f.What)
				}
				return nil
			})
		if err != nil {
			t.Error(err)
		}
	}
}
