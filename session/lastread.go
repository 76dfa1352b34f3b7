package session

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser/datadir"
	"github.com/stasisd/stasis/browser/inventory"
	"github.com/stasisd/stasis/browser/localstorage"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// lastRead completes the datadir of a Chrome that died unread with what the
// session's last checkpoint read, where Chrome had not written its cookies since and
// some are missing on disk: a login that is seconds old would be lost with the newest
// snapshot, and be there in the one before. Which one is told.
func (s *Service) lastRead(ctx context.Context, j job) (doc state.Document, from string) {
	row, err := s.Catalogue.NewestSnapshot(ctx, j.rec.ID)
	if fault.Is(err, fault.NoSnapshot) || err == nil && row.Rescue {
		return doc, ""
	}
	if err == nil {
		doc, err = s.document(ctx, row, "read for a rescue")
	}
	profile := datadir.Path(j.dir.Profile())
	if err == nil && (!doc.Complete || lastWritten(profile, "Cookies", "Cookies-journal").After(doc.CapturedAt)) {
		return doc, ""
	}
	var jar []state.Cookie
	if err == nil {
		jar, err = s.jarOf(ctx, profile)
	}
	if err != nil {
		s.Log.Warn("the last checkpoint could not be held against what Chrome left", "session", j.rec.ID, "error", err)
		return doc, ""
	}
	there := map[string]string{}
	for _, c := range jar {
		there[c.Identity()] = c.Value
	}
	if !slices.ContainsFunc(doc.Cookies, func(c state.Cookie) bool {
		value, kept := there[c.Identity()]
		return !c.Opaque && (!kept || value != c.Value)
	}) {
		return doc, ""
	}
	doc.Datadir = state.DatadirCrash
	if lastWritten(profile, localstorage.Folder).After(doc.CapturedAt) {
		doc.Local = []state.Area{} // what is on disk is newer
	}
	return doc, row.ID
}

// jarOf reads the jar of a profile at rest, in its turn among those that are read.
func (s *Service) jarOf(ctx context.Context, profile string) ([]state.Cookie, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyDeadline)
	defer cancel()
	select {
	case s.surveys <- struct{}{}:
		defer func() { <-s.surveys }()
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "session.jar", "there was no time to read the profile")
	}
	found, err := inventory.Read(ctx, profile)
	return found.Listed, err
}

// lastWritten is when the newest of some files and folders of a profile was
// written; the zero time where none is there.
func lastWritten(profile string, names ...string) (newest time.Time) {
	for _, name := range names {
		// What cannot be looked at is as if it were not there.
		_ = filepath.WalkDir(filepath.Join(profile, name), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // as above
			}
			if info, err := d.Info(); err == nil && info.Mode().IsRegular() && info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return nil
		})
	}
	return newest
}
