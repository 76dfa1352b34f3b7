package save

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// lastReading is the last reading of a session's state over CDP before its Chrome died. A
// checkpoint made it, or the save that the session started from.
type lastReading struct {
	row profiles.Snapshot
	doc state.Document
	// Data that Chrome last wrote before from is older than the reading. Data that it
	// last wrote after until is newer. In between, the order is unknown.
	from, until time.Time
	now         time.Time // by the same clock; before until if the clock was set back
}

// documentAfterCrash returns the document of a profile whose Chrome died before its state
// was read. Each part comes from the newer of two copies: the last reading, or the
// profile. from is the snapshot that has the reading; "" if there is none. Chrome has
// ended.
//
// The rules are those of [Datadirs.Merge]; docs/decisions/crashes.md has
// the reasons.
func (s *Saver) documentAfterCrash(ctx context.Context, j Job) (doc state.Document, from string) {
	doc = crashedDocument(j, s.cfg.Now())
	doc.Passkeys = s.passkeysAfterCrash(ctx, j)
	r, err := s.lastRead(ctx, j)
	if err != nil {
		s.cfg.Log.Warn("a rescue could not read the state in the session's last snapshot; it saves only what Chrome had written to disk", "session", j.Session.ID, "error", err)
		doc.Missed = append(doc.Missed, state.Missed{Component: state.ComponentDatadir,
			Reason: "the state in snapshot " + r.row.ID + " could not be loaded, so what Chrome had not written is missing: " + fault.MessageOf(err)})
		return doc, ""
	}
	if !r.doc.Complete {
		return doc, ""
	}
	merged, err := s.merge(ctx, j, r)
	if err != nil {
		// Nothing is known of the profile, so the whole reading is used.
		s.cfg.Log.Warn("a rescue could not read Chrome's files; it saves the whole state of the session's last snapshot over them", "session", j.Session.ID, "error", err)
		merged = addDoubt(r.doc, state.ComponentDatadir, "", "the profile could not be read after the crash, so the whole state that Stasis last read over CDP was applied over it: "+fault.MessageOf(err))
	}
	merged.Datadir, merged.Inventory, merged.FromDisk, merged.Unwritten, merged.Unstored = state.DatadirCrash, nil, nil, nil, nil
	merged.Missed = append(merged.Missed, j.Missed...)
	merged.Passkeys = doc.Passkeys
	return merged, r.row.ID
}

// addDoubt records in a document that one of the two copies could not be read, so that it
// is unknown which one is newer.
func addDoubt(doc state.Document, component, origin, reason string) state.Document {
	doc.Doubts = append(doc.Doubts, state.Missed{Component: component, Origin: origin, Reason: reason})
	return doc
}

// lastRead finds the last reading of a session. If there is none, its document is not
// complete.
func (s *Saver) lastRead(ctx context.Context, j Job) (r lastReading, err error) {
	if j.Import != nil { // its session has no snapshots
		return r, nil
	}
	r.row, err = s.cfg.Records.NewestSnapshot(ctx, j.Session.ID)
	if fault.Is(err, fault.NoSnapshot) && j.Session.BaseSnapshotID != "" && !j.Partial {
		r.row, err = s.cfg.Records.Snapshot(ctx, j.Session.BaseSnapshotID)
	}
	if fault.Is(err, fault.NoSnapshot) || fault.Is(err, fault.SnapshotNotFound) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if r.doc, err = s.cfg.Snapshots.Document(ctx, r.row, "read for a rescue"); err != nil {
		return r, err
	}
	r.from, r.until, r.now = r.doc.CapturedAt, r.doc.ReadUntil, s.cfg.Now()
	if r.until.IsZero() {
		r.until = r.row.CreatedAt
	}
	if j.Session.BaseSnapshotID == r.row.ID && !j.RestoredAt.IsZero() {
		// The snapshot was applied when the session started, so data that was written
		// until then is older. This also holds if Chrome was restarted since: it found on
		// disk what the previous Chrome had written.
		r.from, r.until = j.RestoredAt, j.RestoredAt
	}
	return r, nil
}

// merge takes the newer copy of each part, from a reading or from the profile of the dead
// Chrome. It first waits until fewer than maxSurveys profiles are being read.
func (s *Saver) merge(ctx context.Context, j Job, r lastReading) (state.Document, error) {
	turn, cancel := context.WithTimeout(ctx, surveyDeadline)
	defer cancel()
	select {
	case s.surveySlots <- struct{}{}:
		defer func() { <-s.surveySlots }()
	case <-turn.Done():
		return r.doc, fault.Wrap(turn.Err(), fault.Timeout, "session.lastread", "the profile could not be read in time: too many profiles were being read")
	}
	return s.cfg.Datadirs.Merge(ctx, j.Dir.Profile(), browser.Reading{Document: r.doc, From: r.from, Until: r.until, Now: r.now,
		Files: func(ctx context.Context, accept func(string) bool) (string, func(), error) {
			dir, remove, err := s.unpackFiles(ctx, r.row, accept)
			if err != nil {
				s.cfg.Log.Warn("a rescue could not unpack the session's last snapshot, so it cannot compare that snapshot's sessionStorage with Chrome's files", "session", j.Session.ID, "error", err)
			}
			return dir, remove, err
		}})
}

// unpackFiles unpacks the accepted files of a snapshot into a new run directory. It returns
// the user data directory, and a function that removes it.
func (s *Saver) unpackFiles(ctx context.Context, row profiles.Snapshot, accept func(name string) bool) (userDataDir string, remove func(), err error) {
	release, err := s.cfg.Snapshots.Hold(ctx, row, "read for a rescue")
	if err != nil {
		return "", nil, err
	}
	defer release()
	saved, err := s.cfg.Archives.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
	if err != nil {
		return "", nil, err
	}
	dir, err := s.cfg.Dirs.NewDir()
	if err != nil {
		return "", nil, err
	}
	if _, err := s.cfg.Archives.Unpack(ctx, saved, dir.Profile(), snapshot.UnpackOptions{Limits: s.cfg.Unpack, Accept: accept}); err != nil {
		browsers.Remove(dir, s.cfg.Log)
		return "", nil, err
	}
	return dir.Profile(), func() { browsers.Remove(dir, s.cfg.Log) }, nil
}
