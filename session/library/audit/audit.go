// Package audit compares a snapshot store with the catalogue that names its snapshots. It
// repairs what can be repaired without loss. Each difference is a [Finding].
//
// A repair needs the daemon to be stopped. A check may run beside a daemon. It looks
// twice at what a running save or delete may be changing, or ignores it because it is too
// new.
package audit

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
)

// The kinds of findings that only a comparison with the catalogue shows.
const (
	DocumentMissing    snapshot.Kind = "document_missing"    // a record names the snapshot
	DefaultBroken      snapshot.Kind = "default_broken"      // the user's default cannot be restored
	RecordDiffers      snapshot.Kind = "record_differs"      // the record and the document disagree
	DocumentUnrecorded snapshot.Kind = "document_unrecorded" // no record names it
	CatalogueLost      snapshot.Kind = "catalogue_lost"      // the catalogue names nothing that the store has
)

// Severity says how serious a finding is.
type Severity string

// The severities, worst first.
const (
	Lost      Severity = "lost"      // something that was saved cannot be restored
	Damaged   Severity = "damaged"   // something differs from what was written, but nothing is lost
	Unchecked Severity = "unchecked" // it could not be checked
	Leftover  Severity = "leftover"  // nothing needs it
)

// Severities returns all severities, worst first.
func Severities() []Severity { return []Severity{Lost, Damaged, Unchecked, Leftover} }

var severities = map[snapshot.Kind]Severity{
	snapshot.DocumentDamaged: Lost, snapshot.ArchiveMissing: Lost, snapshot.ArchiveDamaged: Lost,
	DocumentMissing: Lost, DefaultBroken: Lost,
	snapshot.LatestMissing: Damaged, snapshot.LatestDamaged: Damaged,
	snapshot.ManifestMissing: Damaged, snapshot.ManifestDamaged: Damaged, snapshot.Misplaced: Damaged, RecordDiffers: Damaged, CatalogueLost: Damaged,
	snapshot.VersionUnknown: Unchecked, snapshot.IdentityMissing: Unchecked, snapshot.Unreadable: Unchecked,
	snapshot.ArchiveOrphaned: Leftover, snapshot.StrayObject: Leftover, DocumentUnrecorded: Leftover,
}

// Finding is one problem, and what was done about it.
type Finding struct {
	snapshot.Finding
	Severity Severity
	UserID   string // if a record names the user
	Repaired bool
	Removed  bool
}

// Options say what an audit does.
type Options struct {
	// ReadData, RecheckDelay and Grace are as in [snapshot.CheckOptions]. Grace also
	// applies to documents without a record.
	ReadData     bool
	RecheckDelay time.Duration
	Grace        time.Duration
	// Repair rebuilds the files by which a location's snapshots are found. Remove removes
	// archives that no document names, and documents that no record names, if they are
	// older than Grace. Both need the store and the catalogue for themselves.
	Repair bool
	Remove bool
	// Progress is as in [snapshot.CheckOptions].
	Progress func(archives int)
}

// Summary counts what was checked, found and done.
type Summary struct {
	snapshot.CheckResult
	Recorded int // snapshots that the catalogue names
	Found    map[Severity]int
	Repaired int
	Removed  int
}

// OK reports whether everything could be checked and nothing is lost or damaged.
// Repaired damage does not count.
func (s Summary) OK() bool { return s.Found[Lost]+s.Found[Damaged]+s.Found[Unchecked] == 0 }

// Records are the parts of the catalogue that an audit compares a store with.
type Records struct {
	Sessions  SessionRecords
	Snapshots SnapshotRecords
	Defaults  DefaultRecords
}

// SessionRecords reads the records of sessions; see [profiles.SessionStore].
type SessionRecords interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
}

// SnapshotRecords reads the records of snapshots; see [profiles.SnapshotStore].
type SnapshotRecords interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Snapshots(ctx context.Context, f profiles.SnapshotFilter) ([]profiles.Snapshot, string, error)
}

// DefaultRecords reads the current defaults of users; see [profiles.DefaultStore].
type DefaultRecords interface {
	Default(ctx context.Context, userID string) (profiles.Default, error)
	Defaults(ctx context.Context) ([]profiles.Default, error)
}

// audit is one run of [Run].
type audit struct {
	vault   *snapshot.Vault
	records *Records
	now     func() time.Time
	o       Options
	found   func(Finding) error
	out     Summary
	// orphaned are archives that no document names. wanted are the archives of records
	// whose documents are missing. lost are the snapshots that cannot be restored. unnamed
	// are the documents that no record seems to name.
	orphaned    []snapshot.Finding
	wanted      map[string]bool
	lost        map[string]bool
	unnamed     []snapshot.Snapshot
	known       int // documents that a record names
	unexplained int // documents that no record names and that no running save explains
}

// Run checks everything and passes each finding to found. If the catalogue names nothing
// that the store has, the catalogue is lost: Run then removes nothing and returns a
// config error. Memory use grows with the number of findings, and by a hundred bytes for
// each archive. If records is nil, Run checks only the store.
func Run(ctx context.Context, vault *snapshot.Vault, records *Records, now func() time.Time, o Options, found func(Finding) error) (Summary, error) {
	a := &audit{vault: vault, records: records, now: now, o: o, found: found,
		out: Summary{Found: map[Severity]int{}}, wanted: map[string]bool{}, lost: map[string]bool{}}
	// The store comes first, because a repair may restore what a record misses.
	steps := []func(context.Context) error{a.checkStore, a.checkRecords, a.lostCatalogue, a.checkDefaults, a.removeUnrecorded, a.reportOrphans}
	if records == nil {
		steps = []func(context.Context) error{a.checkStore, a.lostCatalogue, a.reportOrphans}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return a.out, err
		}
	}
	return a.out, nil
}

// report sets a finding's severity, counts it and passes it to the caller. A repaired or
// removed finding counts only as that.
func (a *audit) report(f Finding) error {
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

// checkStore checks the store, and compares each document with its record.
func (a *audit) checkStore(ctx context.Context) (err error) {
	o := snapshot.CheckOptions{ReadData: a.o.ReadData, RecheckDelay: a.o.RecheckDelay, Grace: a.o.Grace, Progress: a.o.Progress}
	if a.records != nil {
		o.Document = func(s snapshot.Snapshot, written time.Time) error { return a.checkDocument(ctx, s, written) }
	}
	a.out.CheckResult, err = a.vault.Check(ctx, o, func(f snapshot.Finding) error {
		if f.Kind == snapshot.ArchiveOrphaned { // reported last: a record may name it
			a.orphaned = append(a.orphaned, f)
			return nil
		}
		finding, err := a.classify(ctx, f)
		if err != nil {
			return err
		}
		if f.Repairable && a.o.Repair {
			if err := a.repair(ctx, &finding); err != nil {
				return err
			}
		}
		return a.report(finding)
	})
	return err
}

// classify distinguishes a lost snapshot from the remains of a save that died before its
// commit, or of a delete that died after it.
func (a *audit) classify(ctx context.Context, f snapshot.Finding) (Finding, error) {
	finding := Finding{Finding: f}
	if a.records == nil || severities[f.Kind] != Lost || f.Snapshot == "" {
		return finding, nil
	}
	row, err := a.records.Snapshots.Snapshot(ctx, f.Snapshot)
	if !fault.Is(err, fault.SnapshotNotFound) {
		finding.UserID = row.UserID
		return finding, err
	}
	_, err = a.records.Sessions.Session(ctx, f.Location.Session)
	if fault.Is(err, fault.SessionNotFound) {
		return finding, nil // the catalogue itself may be incomplete
	}
	finding.Severity = Leftover
	finding.What += "; the catalogue does not list the snapshot"
	return finding, err
}

// repair repairs a location. If the store refuses, the finding says so and the audit
// continues.
func (a *audit) repair(ctx context.Context, f *Finding) error {
	err := a.vault.Repair(ctx, f.Location, a.o.ReadData)
	f.Repaired = err == nil
	if err == nil || ctx.Err() != nil || !fault.Is(err, fault.StoreFailed) {
		return err
	}
	f.What += "; not repaired: " + fault.MessageOf(err)
	return nil
}

// reportOrphans reports and removes the archives that no document and no record without a
// document names. Before it removes any, it checks the store again, because documents
// were removed and restored meanwhile.
func (a *audit) reportOrphans(ctx context.Context) error {
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
		finding := Finding{Finding: f, Removed: a.o.Remove && !unclear}
		if unclear {
			finding.What += ", but some documents or folders cannot be read and may name it"
		}
		if finding.Removed {
			if err := a.vault.DropArchive(ctx, f.Archive); err != nil {
				return err
			}
		}
		if err := a.report(finding); err != nil {
			return err
		}
	}
	return nil
}
