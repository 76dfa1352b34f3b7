package save

import (
	"context"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
)

// checkpointDeadline is how long a checkpoint may use the session's Chrome.
const checkpointDeadline = time.Minute

// CheckpointResult is the result of a checkpoint.
type CheckpointResult struct {
	Answer  CheckpointAnswer
	Problem string   // what is wrong with the snapshot, be it new or an unchanged earlier one
	Replica *Replica // for the next checkpoint; nil: it was removed
	Err     error
}

// Checkpoint saves a session that continues. It starts from the replica of the last
// checkpoint; nil: there is none. sessionCtx, the context of the session's calls, bounds the
// time in which it uses Chrome. After that it needs no Chrome, and only ctx, the daemon's
// own context, bounds it.
func (s *Saver) Checkpoint(ctx, sessionCtx context.Context, j Job, last *Replica) (out CheckpointResult) {
	r := last
	defer func() {
		switch {
		case out.Answer.Unchanged && out.Err == nil:
			s.cfg.Meter.Saved(j.kind(), Unchanged)
		case !fault.Is(out.Err, fault.SessionEnding):
			s.cfg.Meter.Saved(j.kind(), ResultOf(out.Err))
		}
	}()
	defer func() {
		switch {
		case r != nil && out.Err != nil:
			browsers.Remove(r.dir, s.cfg.Log) // it may be incomplete, and takes disk space
			r = nil
		case r != nil && r.damaged:
			browsers.Remove(r.dir, s.cfg.Log)
			r = &Replica{last: r.last}
		}
		out.Replica = r
	}()
	if r == nil || r.dir == nil {
		if r, out.Err = s.newReplica(r); out.Err != nil {
			out.Err = checkpointFailed(out.Err)
			return out
		}
	}
	j.Dir = r.dir
	using, cancel := context.WithTimeout(sessionCtx, checkpointDeadline)
	defer cancel()
	m, err := s.captureReplica(using, &j, r)
	switch {
	case err != nil && sessionCtx.Err() != nil && ctx.Err() == nil:
		out.Err = PreemptedError(sessionCtx, err, "session.checkpoint")
		return out
	case err != nil:
		out.Err = checkpointFailed(err)
		return out
	}
	if out.Answer, out.Problem, err = s.storeCheckpoint(ctx, j, r, m); err != nil {
		out.Err = checkpointFailed(err)
	}
	out.Answer.PausedMS = float64(m.paused.Microseconds()) / 1000
	return out
}

// SessionEndedError returns the error of a call whose session was ended while the call used
// the browser.
func SessionEndedError(op string) error {
	return fault.New(fault.SessionEnding, op, "the session ended while the call was running")
}

// PreemptedError returns the error of a call that failed with err because an end took its
// browser away. The cause of sessionCtx, which that end canceled, says why.
func PreemptedError(sessionCtx context.Context, err error, op string) error {
	why := context.Cause(sessionCtx)
	if errors.Is(why, context.Canceled) { // the daemon stops, or the session has ended
		why = SessionEndedError(op)
	}
	return fault.Wrap(errors.Join(why, err), fault.CodeOf(why), op, fault.MessageOf(why))
}

func checkpointFailed(err error) error {
	if fault.Is(err, fault.NodeLost) {
		return Failure(err, "the checkpoint failed and nothing was stored")
	}
	return Failure(err, "the checkpoint failed and nothing was stored; the session continues")
}

// storeCheckpoint stores a capture, unless the last checkpoint holds the same content.
// problem is what is wrong with it; see [DamagedCopy].
func (s *Saver) storeCheckpoint(ctx context.Context, j Job, r *Replica, m checkpointState) (_ CheckpointAnswer, problem string, err error) {
	fingerprint := r.fingerprint(m.doc, j)
	if r.matchesLast(j, fingerprint) && s.problemPersists(ctx, j, r, m.doc) {
		answer, err := s.unchanged(ctx, j.withProblem(r.last.problem), r.last.snapshot)
		if !fault.Is(err, fault.SnapshotNotFound) {
			return answer, r.last.problem, err
		}
	}
	files, err := s.cfg.Datadirs.Select(ctx, r.dir.Profile())
	if err != nil {
		return CheckpointAnswer{}, "", err
	}
	kept, problem, err := s.Keep(ctx, j, m.doc, files)
	if err != nil {
		return CheckpointAnswer{}, "", err
	}
	// If a fresh copy is damaged too, Chrome's own files are damaged: copying again would
	// not help.
	r.damaged, r.recopied = problem == DamagedCopy && (r.last == nil || r.last.problem != DamagedCopy), false
	r.last = &lastCheckpoint{fingerprint: fingerprint, snapshot: kept.Snapshot.ID, label: j.Label, auto: j.Auto, problem: problem}
	return CheckpointAnswer{Success: kept.Success, Code: kept.Code, Message: kept.Message, Snapshot: *kept.Snapshot, Default: kept.Default}, problem, nil
}

// problemPersists reports whether the problem of the last checkpoint still holds for the same
// files. It reads them only in two cases: they were copied again, or they were never read
// and a default is to move. If the problem has changed, the checkpoint is made again.
func (s *Saver) problemPersists(ctx context.Context, j Job, r *Replica, doc state.Document) bool {
	if r.last.problem == "" || !r.recopied && (r.last.problem == DamagedCopy || j.Move == nil) {
		return true
	}
	_, problem := s.Survey(ctx, j, doc)
	switch {
	case problem == r.last.problem:
		r.recopied = false
	case problem == "" && r.last.problem == UnreadCopy:
		r.last.problem = ""
	default:
		return false
	}
	return true
}

// unchanged answers with the snapshot of the last checkpoint, and moves the default to it
// if the caller asked for that. A snapshot that was removed is the error
// snapshot_not_found.
func (s *Saver) unchanged(ctx context.Context, j Job, id string) (CheckpointAnswer, error) {
	row, err := s.cfg.Records.Snapshot(ctx, id)
	if err != nil {
		return CheckpointAnswer{}, err
	}
	answer := CheckpointAnswer{Success: true, Message: "nothing has changed since the last checkpoint", Unchanged: true,
		Snapshot: library.InfoOf(row, s.cfg.Now())}
	switch {
	case j.NotMoved != "":
		d, err := s.cfg.Records.Default(ctx, row.UserID)
		if err != nil && !fault.Is(err, fault.DefaultNotFound) {
			return answer, err
		}
		answer.Default = &DefaultOutcome{Version: d.Version, Reason: j.NotMoved, LoginCheck: j.checked}
	case j.Move != nil:
		if answer.Default, err = s.MoveDefault(ctx, row, *j.Move, j.checked); err != nil || !answer.Default.Moved {
			if j.DefaultAsked && answer.Default != nil && answer.Default.Conflict {
				answer.Success, answer.Code = false, fault.VersionConflict
				answer.Message += answer.Default.kept()
			}
			return answer, err
		}
		_, err = s.cfg.Records.UpdateSession(ctx, j.Session.ID, func(rec *profiles.Session) error {
			rec.BaseVersion = answer.Default.Version
			return nil
		})
	}
	return answer, err
}
