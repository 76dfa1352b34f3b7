package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// upright is a Chrome that came up, and how.
type upright struct {
	chrome Chrome
	report *RestoreReport // nil for a fresh environment
	doc    state.Document // what was restored
	// overrides are what its pages are told: the create's own, else the saved.
	overrides state.Overrides
	// extensions are those that it has, restored and named ones.
	extensions []state.Extension
	// partial: it has only some origins, and the default it came from has more.
	partial bool
	notes   *RestoredNotes // that came with it; nil: none
	laid    time.Time      // when it was in place; zero for a fresh environment
	// path is how a restore from files went, and why not quicker.
	path, why string
}

// bringUp starts a Chrome with the environment that a create asks for, by the
// quickest way that brings it back whole: the parked Chrome, else the archive.
func (s *Service) bringUp(ctx context.Context, r Create, o origin, named []profiles.Extension) (upright, error) {
	if o.source == nil {
		return s.fresh(ctx, r, named)
	}
	began := s.Now()
	report := &RestoreReport{
		Source: *o.source, SnapshotID: o.snapshot.ID, RequestedMode: string(snapshot.Filesystem),
		Datadir: state.Datadir(o.snapshot.Datadir), Verification: VerificationPending, Warnings: []string{},
		Components: []state.Component{}, Differences: []state.Difference{},
	}
	if r.AllowMemory {
		report.RequestedMode = o.snapshot.Mode
	}
	up := upright{report: report}
	var thawed state.Document
	if report.RequestedMode == string(snapshot.Memory) {
		parked, why := s.thaw(ctx, r, *o.snapshot, named)
		if report.FallbackReason = why; parked != nil {
			up.chrome, up.overrides, up.extensions, up.partial = parked.Chrome, parked.doc.Overrides, parked.extensions, parked.partial
			up.notes = parked.notes
			thawed = parked.doc
		}
	}
	var err error
	if up.chrome != nil {
		report.Mode, report.Path = string(snapshot.Memory), PathParked
		report.Components = asRestored(*o.snapshot)
	} else {
		if up, report.Components, err = s.unpackAndStart(ctx, r, *o.snapshot, named); err != nil {
			return upright{}, err
		}
		up.report = report
		report.Mode, report.Path = string(snapshot.Filesystem), up.path
		report.fellBack(up.why)
		report.Warnings = append(missed(up.doc), untimely(report.Components)...)
	}
	if w := unreadCrash(up.doc); w != "" {
		report.Warnings = append(report.Warnings, w)
	}
	report.Warnings = append(report.Warnings, s.loginsOver(*o.snapshot, up.doc)...)
	if up.partial && r.Origins.All() && o.source.Type == SourceUserDefault {
		up.partial = false // the default itself is so
	}
	report.Warnings = append(report.Warnings, s.passedOver(ctx, o)...)
	report.Warnings = append(report.Warnings, otherEngine(o.snapshot.Engine, up.chrome.Engine())...)
	report.Chrome = Versions{Saved: o.snapshot.Chrome, Running: up.chrome.Version()}
	if tooNew(up.doc, up.chrome) {
		report.setAside()
		up.doc = up.doc.Alone()
	}
	if report.Path == PathParked {
		up.doc = thawed // only now: its answer is to be quick, and it is looked at afterwards
	}
	report.bound()
	report.Notes = up.notes
	up.laid = s.Now().UTC()
	report.DurationMS = up.laid.Sub(began).Milliseconds()
	return up, nil
}

// newDir makes a run directory. Its name is short, for Chrome's socket lies
// below it and a socket's path has 107 bytes at most; the catalogue knows
// which session it belongs to.
func (s *Service) newDir() (*browser.Dir, error) {
	return s.Browsers.NewDir(strings.ToLower(rand.Text()[:8]))
}

// fresh starts an empty environment, in a spare where one is ready.
func (s *Service) fresh(ctx context.Context, r Create, named []profiles.Extension) (upright, error) {
	if spare, _ := s.takeSpare(r.Engine, r.Overrides); spare != nil {
		up, err := s.freshIn(ctx, spare, r, named)
		if err == nil {
			return up, nil
		}
		s.dropSpare(ctx, spare, err)
		if !spareFailed(ctx, err) {
			return upright{}, err
		}
	}
	s.capacity.MakeRoom(ctx)
	dir, err := s.newDir()
	if err != nil {
		return upright{}, err
	}
	if r.installed, _, err = s.install(ctx, dir, nil, named); err != nil {
		s.clear(dir)
		return upright{}, err
	}
	chrome, err := s.Browsers.Fresh(ctx, dir, r.browser())
	if err != nil {
		s.clear(dir)
		return upright{}, err
	}
	return upright{chrome: chrome, overrides: r.Overrides, extensions: r.installed}, nil
}

func (s *Service) freshIn(ctx context.Context, spare *spareChrome, r Create, named []profiles.Extension) (_ upright, err error) {
	if r.installed, _, err = s.install(ctx, spare.Dir(), nil, named); err != nil {
		return upright{}, err
	}
	chrome, err := spare.Fresh(ctx, r.browser())
	return upright{chrome: chrome, overrides: r.Overrides, extensions: r.installed}, err
}

func (s *Service) clear(dir *browser.Dir) {
	if err := dir.Remove(); err != nil {
		s.Log.Error("a run directory could not be removed", "error", err)
	}
}

// unpackAndStart restores from files: in the Chrome that stands by with them,
// else from the archive in a spare where one is ready, else in a Chrome that is
// started while the archive is unpacked.
func (s *Service) unpackAndStart(ctx context.Context, r Create, snap profiles.Snapshot, named []profiles.Extension) (up upright, lines []state.Component, err error) {
	up, lines, idle, err := s.fromStandby(ctx, r, snap, named)
	if err != nil || up.chrome != nil {
		return up, lines, err
	}
	defer func() { up.why = also(idle, up.why) }()
	saved, err := s.Vault.Open(ctx, locationOf(snap.UserID, snap.SessionID), snap.ID)
	if err != nil {
		return up, nil, err
	}
	if err := s.Vault.Readable(saved); err != nil {
		return up, nil, err // before a Chrome is spent on it
	}
	spare, why := s.takeSpare(r.Engine, r.Overrides)
	if spare != nil {
		up, lines, err = s.restoreOn(ctx, s.onSpare(spare, r.Engine), r, saved, named)
		if err == nil {
			return up, lines, nil
		}
		s.dropSpare(ctx, spare, err)
		if !spareFailed(ctx, err) {
			return upright{}, nil, err
		}
		why = "the spare Chrome failed: " + fault.MessageOf(err)
	}
	g, err := s.starting(ctx, r.Engine, r.Overrides)
	if err != nil {
		return upright{}, nil, err
	}
	up, lines, err = s.restoreOn(ctx, g, r, saved, named)
	if spareFailed(ctx, err) && r.Engine == browser.EngineShell {
		// A shell that opens more at its start than is known here: one that starts on
		// the profile has it all the same.
		why = also(why, "the empty Chrome failed: "+fault.MessageOf(err))
		g.abandon(ctx)
		if g, err = s.still(r.Engine); err != nil {
			return upright{}, nil, err
		}
		up, lines, err = s.restoreOn(ctx, g, r, saved, named)
	}
	if err != nil {
		g.abandon(ctx)
		return upright{}, nil, err
	}
	up.why = why
	return up, lines, nil
}

// restoreOn unpacks an archive and brings it in on its ground.
func (s *Service) restoreOn(ctx context.Context, g *ground, r Create, saved snapshot.Snapshot, named []profiles.Extension) (up upright, lines []state.Component, err error) {
	u, err := s.unpack(ctx, g.at, r, saved, named)
	if err != nil {
		return up, nil, err
	}
	defer u.leave()
	r.installed = u.installed
	why, err := g.suit(ctx, u.overrides)
	if err != nil {
		return up, nil, err
	}
	chrome, report, err := g.restored(ctx, u.doc, r.browser())
	if err != nil {
		return up, nil, err
	}
	up, lines = u.brought(chrome, report)
	up.why = why
	if up.path = PathCold; g.warm {
		up.path = PathWarm
	}
	return up, lines, nil
}

// tooNew reports whether a document's profile was not used, because a newer
// Chrome than this one wrote it. A thawed Chrome has no document here.
func tooNew(doc state.Document, running Chrome) bool {
	return doc.Datadir != state.DatadirNone && state.Newer(doc.Chrome.Version, running.Version())
}

// setAside tells that the profile was not used.
func (r *RestoreReport) setAside() {
	r.Datadir = state.DatadirNone
	reason := "the profile was saved by Chrome " + r.Chrome.Saved + ", newer than " + r.Chrome.Running +
		" which runs, and is not used: what had been read of it was laid on an empty profile"
	r.Warnings = append(r.Warnings, reason)
	r.fellBack(reason)
}

// fellBack adds a reason why a slower way was taken; "" is none.
func (r *RestoreReport) fellBack(why string) {
	r.FallbackReason = also(r.FallbackReason, why)
}

// also adds a reason to another; "" is none.
func also(why, more string) string {
	if why != "" && more != "" {
		return why + "; " + more
	}
	return why + more
}

// encode writes a value of this package as JSON; such values always encode.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
