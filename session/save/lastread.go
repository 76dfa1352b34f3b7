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

// lastReading is the last reading of a session's state over CDP before its Chrome died: by
// a checkpoint, or by the save that the session began with.
type lastReading struct {
	row profiles.Snapshot
	doc state.Document
	// What Chrome wrote last before from is older than the reading, and what it wrote
	// after until is newer. Between the two it cannot be told.
	from, until time.Time
	now         time.Time // by the same clock; earlier than these if it was set back
}

// left is the document of a profile whose Chrome died before its state was read. Each
// part comes from the newer of two copies: the last reading, or the profile. from is the
// snapshot that has the reading, "" where there is none. The Chrome has ended.
//
// The rules are those of [Datadirs.Merge]; docs/decisions/crashes.md has
// the reasons.
func (s *Saver) left(ctx context.Context, j Job) (doc state.Document, from string) {
	doc = crashed(j, s.cfg.Now())
	doc.Passkeys = s.leftPasskeys(ctx, j)
	r, err := s.lastRead(ctx, j)
	if err != nil {
		s.cfg.Log.Warn("what was read last could not be held against what Chrome left", "session", j.Session.ID, "error", err)
		doc.Missed = append(doc.Missed, state.Missed{Component: state.ComponentDatadir,
			Reason: "what snapshot " + r.row.ID + " had read could not be had, so what Chrome had not written is missing: " + fault.MessageOf(err)})
		return doc, ""
	}
	if !r.doc.Complete {
		return doc, ""
	}
	merged, err := s.merge(ctx, j, r)
	if err != nil {
		// Nothing is known of the profile, so the whole reading is taken.
		s.cfg.Log.Warn("what Chrome left could not be read", "session", j.Session.ID, "error", err)
		merged = doubted(r.doc, state.ComponentDatadir, "", "what Chrome left could not be read, so what was read last is laid over it: "+fault.MessageOf(err))
	}
	merged.Datadir, merged.Inventory, merged.FromDisk, merged.Unwritten, merged.Unstored = state.DatadirCrash, nil, nil, nil, nil
	merged.Missed = append(merged.Missed, j.Missed...)
	merged.Passkeys = doc.Passkeys
	return merged, r.row.ID
}

// doubted adds to a document that one of the two copies could not be read, so that it
// is unknown which is newer.
func doubted(doc state.Document, component, origin, reason string) state.Document {
	doc.Doubts = append(doc.Doubts, state.Missed{Component: component, Origin: origin, Reason: reason})
	return doc
}

// lastRead finds the last reading of a session; one that is not complete where
// there is none.
func (s *Saver) lastRead(ctx context.Context, j Job) (r lastReading, err error) {
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
		// It was applied when the session began, so all that was written until then is
		// older. A Chrome that was started again since found what the one before had written.
		r.from, r.until = j.RestoredAt, j.RestoredAt
	}
	return r, nil
}

// merge takes the newer copy of each part, from a reading or from what the dead Chrome
// left. It waits for its turn among the profiles that are read.
func (s *Saver) merge(ctx context.Context, j Job, r lastReading) (state.Document, error) {
	turn, cancel := context.WithTimeout(ctx, surveyDeadline)
	defer cancel()
	select {
	case s.surveys <- struct{}{}:
		defer func() { <-s.surveys }()
	case <-turn.Done():
		return r.doc, fault.Wrap(turn.Err(), fault.Timeout, "session.lastread", "there was no time to read the profile")
	}
	return s.cfg.Datadirs.Merge(ctx, j.Dir.Profile(), browser.Reading{Document: r.doc, From: r.from, Until: r.until, Now: r.now,
		Files: func(ctx context.Context, accept func(string) bool) (string, func(), error) {
			dir, remove, err := s.someFiles(ctx, r.row, accept)
			if err != nil {
				s.cfg.Log.Warn("the files of the last snapshot could not be read", "session", j.Session.ID, "error", err)
			}
			return dir, remove, err
		}})
}

// someFiles unpacks the accepted files of a snapshot into a run directory of their own.
// It returns its user data directory, and what removes it.
func (s *Saver) someFiles(ctx context.Context, row profiles.Snapshot, accept func(name string) bool) (userDataDir string, remove func(), err error) {
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
