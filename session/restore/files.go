package restore

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Files is a Chrome that was restored from files.
type Files struct {
	StartResult
	Components []state.Component // the report's lines
	path, why  string            // the restore path, and why no quicker one was taken
}

// FromFiles restores a snapshot from files. It tries the standby of the snapshot first.
// Otherwise it unpacks the archive into a spare, or into a Chrome that starts meanwhile.
func (r *Restorer) FromFiles(ctx context.Context, q Request, row profiles.Snapshot) (f Files, err error) {
	f, standbyWhy, err := r.fromStandby(ctx, q, row)
	if err != nil || f.Chrome != nil {
		return f, err
	}
	saved, err := r.archives.Open(ctx, row)
	if err != nil {
		return Files{}, err
	}
	if err := r.archives.Readable(saved); err != nil {
		return Files{}, err // checked before a Chrome is used for it
	}
	spare, why := r.takeSpare(q.Owner, q.Engine, q.Overrides)
	if spare != nil {
		f, err = r.restoreInto(ctx, spareTarget(r, spare, q.Engine), q, row, saved)
		if err == nil {
			f.why = joinReasons(standbyWhy, f.why)
			return f, nil
		}
		r.dropSpare(ctx, spare, err)
		if !chromeFailed(ctx, err) {
			return Files{}, err
		}
		why = "the spare Chrome failed: " + fault.MessageOf(err)
	}
	f, why, err = r.restoreCold(ctx, q, row, saved, why, spare == nil)
	f.why = joinReasons(standbyWhy, why)
	return f, err
}

// restoreCold restores an archive in a Chrome that starts while the archive is unpacked.
// why is the reason why no quicker path was taken; the returned reason adds to it. gates
// says whether that Chrome may have gates.
func (r *Restorer) restoreCold(ctx context.Context, q Request, row profiles.Snapshot, saved snapshot.Snapshot, why string, gates bool) (Files, string, error) {
	t, err := startingTarget(ctx, r, q.Owner, q.Engine, q.Overrides, gates)
	if err != nil {
		return Files{}, why, err
	}
	f, err := r.restoreInto(ctx, t, q, row, saved)
	if chromeFailed(ctx, err) && (gates || q.Engine == browser.EngineShell) {
		// This Chrome may open profile files at its start that are not in the list of the
		// gates. One without gates does not need the list.
		why = joinReasons(why, "the empty Chrome failed: "+fault.MessageOf(err))
		t.abandon(ctx)
		if t, err = ungatedTarget(ctx, r, q.Owner, q.Engine, q.Overrides); err != nil {
			return Files{}, why, err
		}
		f, err = r.restoreInto(ctx, t, q, row, saved)
	}
	if err != nil {
		t.abandon(ctx)
		return Files{}, why, err
	}
	return f, why, nil
}

// restoreInto unpacks an archive and loads it into the target.
func (r *Restorer) restoreInto(ctx context.Context, t *target, q Request, row profiles.Snapshot, saved snapshot.Snapshot) (f Files, err error) {
	u, err := r.unpack(ctx, t.unpackDir, q, saved, t.gates && t.engine != browser.EngineShell)
	if err != nil {
		return f, err
	}
	defer u.release()
	o := q.options(u.installed)
	if u.tail != nil {
		release, err := r.archives.Hold(ctx, row)
		if err != nil {
			u.stopTail()
			return f, err
		}
		o.Tail = heldTail{u.tail, sync.OnceFunc(release), r.log, saved.ID}
		defer func() {
			if f.Chrome == nil {
				u.stopTail()
				o.Tail.Ended(context.Canceled)
			}
		}()
	}
	why, err := t.adapt(ctx, u.overrides)
	if err != nil {
		return f, err
	}
	chrome, lines, err := t.load(ctx, u.doc, o)
	if err != nil {
		return f, err
	}
	f = u.started(chrome, lines)
	f.why = joinReasons(why, chrome.SecondProfileReason())
	if f.path = PathCold; t.warm {
		f.path = PathWarm
	}
	return f, nil
}
