package save

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// Replica is the copy of a live session's files that its checkpoints archive. It is kept
// until the session ends, so each checkpoint copies only what has changed since the last
// one. It has its own run directory, because Chrome may write into the session's.
type Replica struct {
	dir   *browser.Dir // nil: it has to be made again
	files *browser.Copy
	last  *lastCheckpoint // nil: no checkpoint has been stored yet
	// damaged: the copy has damage, so the next checkpoint copies everything again. recopied:
	// this copy was made for that reason.
	damaged, recopied bool
}

// lastCheckpoint describes the last checkpoint.
type lastCheckpoint struct {
	fingerprint [sha256.Size]byte
	snapshot    string
	label       string
	auto        bool
	problem     string // what is wrong with it
}

// checkpointState is the environment at one time while Chrome runs: the state as read.
// Its files, of just after that, are in the replica.
type checkpointState struct {
	doc    state.Document
	paused time.Duration // how long Chrome was frozen
}

// newReplica makes an empty replica, in place of a damaged one; nil: there was none.
func (s *Saver) newReplica(damaged *Replica) (*Replica, error) {
	dir, err := s.cfg.Dirs.NewDir()
	if err != nil {
		return nil, err
	}
	r := &Replica{dir: dir, files: browser.NewCopy(dir)}
	if damaged != nil {
		r.last, r.recopied = damaged.last, true
	}
	return r, nil
}

// fingerprint hashes a state document, its notes, the turns of the conversation and the
// copied files. It leaves out what differs between two readings of the same state.
func (r *Replica) fingerprint(doc state.Document, j Job) [sha256.Size]byte {
	doc.CapturedAt, doc.ReadUntil = time.Time{}, time.Time{}
	doc.Tabs = slices.Clone(doc.Tabs)
	for i := range doc.Tabs {
		doc.Tabs[i].TargetID = ""
	}
	files := r.files.Sum()
	return sha256.Sum256(slices.Concat(profiles.JSON(doc), profiles.JSON(j.Notes), profiles.JSON(j.Turns), files[:]))
}

// matchesLast reports whether the last checkpoint has the same content and can serve as this
// one. An automatic checkpoint is pruned by age, so it cannot serve as one that a caller
// requests.
func (r *Replica) matchesLast(j Job, fingerprint [sha256.Size]byte) bool {
	return r.last != nil && r.last.fingerprint == fingerprint && (j.Auto || !r.last.auto) && (j.Label == "" || j.Label == r.last.label)
}

// captureReplica reads the state and copies the files of the same time, as nearly as
// possible. It first copies what takes long, then reads the state, then freezes Chrome
// and copies the rest. If state and files equal those of the last checkpoint, it does not
// freeze Chrome.
func (s *Saver) captureReplica(ctx context.Context, j *Job, r *Replica) (m checkpointState, err error) {
	if err := j.Chrome.Wake(ctx); err != nil {
		return m, err
	}
	if j.Notes, err = agent.NotesToSave(ctx, s.cfg.Records, j.Session); err != nil {
		return m, err
	}
	if *j, err = s.checkLogin(ctx, *j); err != nil {
		return m, err
	}
	files, err := s.checkSpace(ctx, *j)
	if err != nil {
		return m, err
	}
	for tries := 1; ; tries++ {
		slow, err := s.copyState(ctx, *j, r, files, &m)
		if !slow || tries == copyTries || j.Auto || ctx.Err() != nil {
			return m, err
		}
	}
}

// copyTries is how often a checkpoint that a caller asked for tries to copy the files. Chrome is
// paused only for a short time each, and on a busy machine that may not be enough. A later try
// copies only what has changed since. An automatic checkpoint does not try again: the next one
// comes soon.
const copyTries = 3

// copyState reads the state and copies the files once. It adds to how long Chrome was paused, and
// reports whether that was too short.
func (s *Saver) copyState(ctx context.Context, j Job, r *Replica, files []browser.File, m *checkpointState) (slow bool, err error) {
	live := j.Chrome.Dir().Profile()
	behind, err := r.files.Behind(ctx, live)
	if err == nil && behind {
		err = j.Chrome.Precopy(ctx, r.files)
	}
	if err != nil {
		return false, err
	}
	if m.doc, err = s.read(ctx, j, files); err != nil {
		return false, err
	}
	if !behind && r.matchesLast(j, r.fingerprint(m.doc, j)) {
		if behind, err = r.files.Behind(ctx, live); err != nil || !behind {
			return false, err
		}
	}
	paused, err := j.Chrome.Copy(ctx, r.files)
	m.paused += paused
	return fault.Is(err, fault.Timeout), err
}

// DropReplica removes the replica that the next checkpoint would start from; nil: none.
func (s *Saver) DropReplica(r *Replica) {
	if r != nil && r.dir != nil {
		browsers.Remove(r.dir, s.cfg.Log)
	}
}
