package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
)

// page is how many records are read at once.
const page = 1000

// checkRecords looks for the document of every record. A delete removes the record first, so
// a record whose document is missing is looked up again.
func (a *audit) checkRecords(ctx context.Context) error {
	for after := ""; ; {
		rows, next, err := a.records.Snapshots.Snapshots(ctx, profiles.SnapshotFilter{Limit: page, StartAfter: after})
		if err != nil {
			return err
		}
		for _, row := range rows {
			a.out.Recorded++
			if err := a.checkRecord(ctx, row); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			return nil
		}
	}
}

func (a *audit) checkRecord(ctx context.Context, row profiles.Snapshot) error {
	loc := library.LocationOf(row.UserID, row.SessionID)
	has, err := a.vault.Has(ctx, loc, row.ID)
	if has || err != nil && !fault.Is(err, fault.InvalidField) {
		return err
	}
	if _, err := a.records.Snapshots.Snapshot(ctx, row.ID); fault.Is(err, fault.SnapshotNotFound) {
		a.out.Recorded--
		return nil
	} else if err != nil {
		return err
	}
	a.wanted[row.ArchiveID] = true
	f := Finding{UserID: row.UserID, Finding: snapshot.Finding{Kind: DocumentMissing, Location: loc, Snapshot: row.ID, Archive: row.ArchiveID,
		What: "the catalogue names this snapshot, but its document is missing"}}
	if key, err := loc.DocumentKey(row.ID); err == nil {
		f.Key = key.String()
	}
	return a.report(f)
}

// HasAny reports whether the store has the document of any snapshot that the catalogue
// names. named is how many names it looked up; all of them if it found none.
func HasAny(ctx context.Context, vault *snapshot.Vault, records SnapshotRecords) (named int, has bool, err error) {
	for after := ""; ; {
		rows, next, err := records.Snapshots(ctx, profiles.SnapshotFilter{Limit: page, StartAfter: after})
		if err != nil {
			return named, false, err
		}
		for _, row := range rows {
			named++
			has, err := vault.Has(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
			if has || err != nil && !fault.Is(err, fault.InvalidField) {
				return named, has, err
			}
		}
		if after = next; after == "" {
			return named, false, nil
		}
	}
}

// checkDocument compares a document with its record, and remembers a document that has no
// record.
func (a *audit) checkDocument(ctx context.Context, s snapshot.Snapshot, written time.Time) error {
	row, err := a.records.Snapshots.Snapshot(ctx, s.ID)
	if fault.Is(err, fault.SnapshotNotFound) {
		if a.now().Sub(written) >= a.o.Grace {
			a.unnamed = append(a.unnamed, s)
			a.unexplained++
			return nil
		}
		// A running save has its session recorded already.
		_, err = a.records.Sessions.Session(ctx, s.Location.Session)
		if fault.Is(err, fault.SessionNotFound) {
			a.unexplained++
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	a.known++
	if library.LocationOf(row.UserID, row.SessionID) == s.Location && row.ArchiveID == s.Archive.ID {
		return nil
	}
	key, err := s.Location.DocumentKey(s.ID)
	if err != nil {
		return err
	}
	return a.report(Finding{UserID: row.UserID, Finding: snapshot.Finding{Kind: RecordDiffers, Location: s.Location, Snapshot: s.ID,
		Archive: s.Archive.ID, Key: key.String(), What: "the catalogue records another location or another archive"}})
}

// lostCatalogue reports a catalogue that is empty or belongs to another store. If Remove
// is set it returns an error, so that nothing is removed.
func (a *audit) lostCatalogue(context.Context) error {
	if a.known > 0 || a.out.Snapshots+a.out.Archives == 0 {
		return nil
	}
	if !a.o.Remove {
		if a.out.Snapshots == 0 || a.records != nil && a.unexplained == 0 {
			return nil
		}
		return a.report(Finding{Finding: snapshot.Finding{Kind: CatalogueLost, What: fmt.Sprintf(
			"it names none of the %d snapshots in the store: it is lost, or it belongs to another store", a.out.Snapshots)}})
	}
	return fault.New(fault.Config, "audit.remove",
		"the catalogue names none of the %d snapshots and %d archives in the store: it is lost, or it belongs to another store; nothing was removed",
		a.out.Snapshots, a.out.Archives)
}

// checkDefaults checks the snapshot of every user's default.
func (a *audit) checkDefaults(ctx context.Context) error {
	all, err := a.records.Defaults.Defaults(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		row, err := a.records.Snapshots.Snapshot(ctx, d.SnapshotID)
		what := "the default names a snapshot that is not in the catalogue"
		switch {
		case err == nil && !a.lost[d.SnapshotID]:
			continue
		case err == nil:
			what = "the default names a snapshot that cannot be restored"
		case !fault.Is(err, fault.SnapshotNotFound):
			return err
		}
		if now, err := a.records.Defaults.Default(ctx, d.UserID); fault.Is(err, fault.DefaultNotFound) || err == nil && now != d {
			continue // moved meanwhile
		} else if err != nil {
			return err
		}
		f := Finding{UserID: d.UserID, Finding: snapshot.Finding{Kind: DefaultBroken, Snapshot: d.SnapshotID, Archive: row.ArchiveID, What: what}}
		if row.ID != "" {
			f.Location = library.LocationOf(row.UserID, row.SessionID)
		}
		if err := a.report(f); err != nil {
			return err
		}
	}
	return nil
}

// removeUnrecorded reports and removes documents that no record names: the remains of a save
// that died before its commit. If the catalogue does not have the session either, it may
// be older than the store, and the document stays.
func (a *audit) removeUnrecorded(ctx context.Context) error {
	for _, s := range a.unnamed {
		has, err := a.vault.Has(ctx, s.Location, s.ID)
		if err != nil {
			return err
		}
		_, err = a.records.Snapshots.Snapshot(ctx, s.ID)
		if !has || err == nil {
			continue // deleted or committed meanwhile
		}
		if !fault.Is(err, fault.SnapshotNotFound) {
			return err
		}
		key, err := s.Location.DocumentKey(s.ID)
		if err != nil {
			return err
		}
		f := Finding{Finding: snapshot.Finding{Kind: DocumentUnrecorded, Location: s.Location, Snapshot: s.ID, Archive: s.Archive.ID,
			Key: key.String(), What: "the catalogue does not list this document"}}
		switch _, err := a.records.Sessions.Session(ctx, s.Location.Session); {
		case fault.Is(err, fault.SessionNotFound):
			f.What += ", and its session is unknown; the catalogue may be older than the store"
		case err != nil:
			return err
		case a.o.Remove:
			// nil leaves the archive, which another document may name; orphans decides.
			if err := a.vault.Delete(ctx, s.Location, s.ID, nil); err != nil {
				return err
			}
			f.Removed = true
		}
		if err := a.report(f); err != nil {
			return err
		}
	}
	return nil
}

// Stored reports whether a store has the document and the archive that a record names. It
// opens neither, and does not compare the archive's length.
func Stored(ctx context.Context, store snapshot.Store, row profiles.Snapshot) (bool, error) {
	document, err := library.LocationOf(row.UserID, row.SessionID).DocumentKey(row.ID)
	if err != nil {
		return false, err
	}
	archive, err := snapshot.ArchiveKey(row.ArchiveID)
	if err != nil {
		return false, err
	}
	for _, key := range []snapshot.Key{document, archive} {
		if _, err := store.Stat(ctx, key); err != nil {
			if fault.Is(err, fault.SnapshotNotFound) {
				err = nil
			}
			return false, err
		}
	}
	return true, nil
}
