// Package audit compares a snapshot store with the catalogue that names its snapshots, and
// repairs what can be repaired without a loss. Each difference is a [Finding].
//
// A repair runs without a daemon. A check also runs beside one: what a save or a delete
// of the daemon is about to change is looked at twice, or is too new to be a finding.
package audit

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
)

// The kinds of findings that need the catalogue to be seen.
const (
	DocumentMissing    snapshot.Kind = "document_missing"    // of a snapshot that a record names
	DefaultBroken      snapshot.Kind = "default_broken"      // it cannot be restored
	RecordDiffers      snapshot.Kind = "record_differs"      // from the document
	DocumentUnrecorded snapshot.Kind = "document_unrecorded" // no record names it
	CatalogueLost      snapshot.Kind = "catalogue_lost"      // it names nothing that the store has
)

// Severity says how bad a finding is.
type Severity string

// The severities, worst first.
const (
	Lost      Severity = "lost"      // something that was saved cannot be restored
	Damaged   Severity = "damaged"   // something is not as it was written, and nothing is lost
	Unchecked Severity = "unchecked" // it could not be looked at
	Leftover  Severity = "leftover"  // nobody needs it
)

// Severities are all of them, worst first.
func Severities() []Severity { return []Severity{Lost, Damaged, Unchecked, Leftover} }

var severities = map[snapshot.Kind]Severity{
	snapshot.DocumentDamaged: Lost, snapshot.ArchiveMissing: Lost, snapshot.ArchiveDamaged: Lost,
	DocumentMissing: Lost, DefaultBroken: Lost,
	snapshot.LatestMissing: Damaged, snapshot.LatestDamaged: Damaged,
	snapshot.ManifestMissing: Damaged, snapshot.ManifestDamaged: Damaged, RecordDiffers: Damaged, CatalogueLost: Damaged,
	snapshot.VersionUnknown: Unchecked, snapshot.IdentityMissing: Unchecked, snapshot.Unreadable: Unchecked,
	snapshot.ArchiveOrphaned: Leftover, snapshot.StrayObject: Leftover, DocumentUnrecorded: Leftover,
}

// Finding is what is wrong, and what was done about it.
type Finding struct {
	snapshot.Finding
	Severity Severity
	UserID   string // where a record tells
	Repaired bool
	Removed  bool
}

// Options say what is done.
type Options struct {
	// ReadData, Settle and Grace are those of [snapshot.CheckOptions]; Grace is
	// that of documents without a record too.
	ReadData bool
	Settle   time.Duration
	Grace    time.Duration
	// Repair rebuilds what locations' snapshots are found by. Remove removes the
	// archives that no document names, and the documents that no record names,
	// older than Grace. Both want the store and the catalogue for themselves.
	Repair bool
	Remove bool
}

// Summary counts what was looked at, found and done.
type Summary struct {
	snapshot.Checked
	Recorded int // snapshots that the catalogue names
	Found    map[Severity]int
	Repaired int
	Removed  int
}

// Sound reports whether everything was looked at and nothing was lost or damaged,
// or all of that was put right.
func (s Summary) Sound() bool { return s.Found[Lost]+s.Found[Damaged]+s.Found[Unchecked] == 0 }

// Records are the records of the catalogue that an audit compares a store with.
type Records struct {
	Sessions  SessionRecords
	Snapshots SnapshotRecords
	Defaults  DefaultRecords
}

// SessionRecords are the records of sessions; see [profiles.SessionStore].
type SessionRecords interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
}

// SnapshotRecords are the records of snapshots; see [profiles.SnapshotStore].
type SnapshotRecords interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Snapshots(ctx context.Context, f profiles.SnapshotFilter) ([]profiles.Snapshot, string, error)
}

// DefaultRecords are the current defaults of users; see [profiles.DefaultStore].
type DefaultRecords interface {
	Default(ctx context.Context, userID string) (profiles.Default, error)
	Defaults(ctx context.Context) ([]profiles.Default, error)
}

// audit is one run.
type audit struct {
	vault   *snapshot.Vault
	records *Records
	now     func() time.Time
	o       Options
	found   func(Finding) error
	out     Summary
	// orphaned are archives that no document names, wanted those of records whose
	// documents are missing, lost the snapshots that cannot be restored, and alone
	// the documents that no record seems to name.
	orphaned []snapshot.Finding
	wanted   map[string]bool
	lost     map[string]bool
	alone    []snapshot.Snapshot
	known    int // documents that a record names
	strange  int // those that none names, and that no running save explains
}

// Run checks everything and reports what it finds. Nothing is removed where the
// catalogue names none of what the store has, for then it is the catalogue that is
// lost: a config fault. Memory grows with what is found, and by a hundred bytes
// for each archive. records nil looks at the store alone.
func Run(ctx context.Context, vault *snapshot.Vault, records *Records, now func() time.Time, o Options, found func(Finding) error) (Summary, error) {
	a := &audit{vault: vault, records: records, now: now, o: o, found: found,
		out: Summary{Found: map[Severity]int{}}, wanted: map[string]bool{}, lost: map[string]bool{}}
	// The store comes first: a repair may put back what a record misses.
	steps := []func(context.Context) error{a.stored, a.recorded, a.lostCatalogue, a.defaults, a.unrecorded, a.orphans}
	if records == nil {
		steps = []func(context.Context) error{a.stored, a.lostCatalogue, a.orphans}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return a.out, err
		}
	}
	return a.out, nil
}

// tell gives a finding its severity and passes it on. What was put right counts
// by that alone.
func (a *audit) tell(f Finding) error {
	if f.Severity == "" {
		f.Severity = severities[f.Kind]
	}
	switch {
	case f.Repaired:
		a.out.Repaired++
	case f.Removed:
		a.out.Removed++
	default:
		a.out.Found[f.Severity]++
	}
	if f.Severity == Lost && f.Snapshot != "" && !f.Repaired {
		a.lost[f.Snapshot] = true
	}
	return a.found(f)
}

// stored looks at the store, and compares each document with its record.
func (a *audit) stored(ctx context.Context) (err error) {
	o := snapshot.CheckOptions{ReadData: a.o.ReadData, Settle: a.o.Settle, Grace: a.o.Grace}
	if a.records != nil {
		o.Document = func(s snapshot.Snapshot, written time.Time) error { return a.document(ctx, s, written) }
	}
	a.out.Checked, err = a.vault.Check(ctx, o, func(f snapshot.Finding) error {
		if f.Kind == snapshot.ArchiveOrphaned { // told last: it may be somebody's
			a.orphaned = append(a.orphaned, f)
			return nil
		}
		told, err := a.judged(ctx, f)
		if err != nil {
			return err
		}
		if f.Repairable && a.o.Repair {
			if err := a.repair(ctx, &told); err != nil {
				return err
			}
		}
		return a.tell(told)
	})
	return err
}

// judged tells a snapshot that is lost from what a save that died before its
// commit, or a delete that died after it, has left.
func (a *audit) judged(ctx context.Context, f snapshot.Finding) (Finding, error) {
	told := Finding{Finding: f}
	if a.records == nil || severities[f.Kind] != Lost || f.Snapshot == "" {
		return told, nil
	}
	row, err := a.records.Snapshots.Snapshot(ctx, f.Snapshot)
	if !fault.Is(err, fault.SnapshotNotFound) {
		told.UserID = row.UserID
		return told, err
	}
	_, err = a.records.Sessions.Session(ctx, f.Location.Session)
	if fault.Is(err, fault.SessionNotFound) {
		return told, nil // it may be the catalogue that is not the whole one
	}
	told.Severity = Leftover
	told.What += "; no record names the snapshot"
	return told, err
}

// repair puts a location right. Where the store does not let it, the finding says
// so, and the next one has its turn.
func (a *audit) repair(ctx context.Context, f *Finding) error {
	err := a.vault.Repair(ctx, f.Location, a.o.ReadData)
	f.Repaired = err == nil
	if err == nil || ctx.Err() != nil || !fault.Is(err, fault.StoreFailed) {
		return err
	}
	f.What += "; not repaired: " + fault.MessageOf(err)
	return nil
}

// orphans tells and removes the archives that no document names, and no record
// whose document is missing. Before any is removed, everything is looked at once
// more: documents were removed and put back meanwhile.
func (a *audit) orphans(ctx context.Context) error {
	unclear := a.out.Unclear > 0
	if a.o.Remove {
		a.orphaned = nil
		again, err := a.vault.Check(ctx, snapshot.CheckOptions{Grace: a.o.Grace}, func(f snapshot.Finding) error {
			if f.Kind == snapshot.ArchiveOrphaned {
				a.orphaned = append(a.orphaned, f)
			}
			return nil
		})
		if err != nil {
			return err
		}
		unclear = again.Unclear > 0
	}
	for _, f := range a.orphaned {
		if a.wanted[f.Archive] {
			continue
		}
		told := Finding{Finding: f, Removed: a.o.Remove && !unclear}
		if unclear {
			told.What += ", but there are documents or folders that cannot be read, and it may be theirs"
		}
		if told.Removed {
			if err := a.vault.DropArchive(ctx, f.Archive); err != nil {
				return err
			}
		}
		if err := a.tell(told); err != nil {
			return err
		}
	}
	return nil
}
