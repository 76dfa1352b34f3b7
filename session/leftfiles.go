package session

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/files"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
)

// leftFiles are the downloads and uploads of sessions that this node has ended as moved. No
// snapshot contains them, so their run directory stays until the session lives again, and the
// node that continues it fetches them. Its methods are safe for concurrent use.
type leftFiles struct {
	now func() time.Time
	log *slog.Logger

	mu   sync.Mutex
	from Destinations         // the other nodes
	held map[string]heldFiles // by session
}

// heldFiles is a run directory that is kept.
type heldFiles struct {
	dir     *browser.Dir
	release func()
}

func newLeftFiles(now func() time.Time, log *slog.Logger) *leftFiles {
	return &leftFiles{now: now, log: log, from: noDestinations{}, held: map[string]heldFiles{}}
}

// useNodes sets the other nodes.
func (l *leftFiles) useNodes(from Destinations) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = from
}

// hold keeps the run directory of a session that is about to end as moved, and returns how many
// files it has. If there are none, it is not kept.
func (l *leftFiles) hold(id string, dir *browser.Dir) (int, error) {
	n, err := files.Count(dir)
	if err != nil || n == 0 {
		return 0, err
	}
	l.drop(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[id] = heldFiles{dir, dir.Retain()}
	return n, nil
}

// drop no longer keeps the directory of a session.
func (l *leftFiles) drop(id string) {
	l.mu.Lock()
	was, held := l.held[id]
	delete(l.held, id)
	l.mu.Unlock()
	if held {
		was.release()
	}
}

// ids returns the sessions whose directories are kept.
func (l *leftFiles) ids() (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.held {
		ids = append(ids, id)
	}
	return ids
}

// close drops all.
func (l *leftFiles) close() {
	for _, id := range l.ids() {
		l.drop(id)
	}
}

// dir returns the directory that is kept of a session; nil: none.
func (l *leftFiles) dir(id string) *browser.Dir {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[id].dir
}

// isDir reports whether a directory is the one that is kept of a session.
func (l *leftFiles) isDir(id, name string) bool {
	dir := l.dir(id)
	return dir != nil && dir.Name() == name
}

// give writes the files of a session to w. It returns file_not_found if the node does not have
// them.
func (l *leftFiles) give(ctx context.Context, id string, w io.Writer) error {
	dir := l.dir(id)
	if dir == nil {
		return fault.New(fault.FileNotFound, "session.give_files", "this node does not have the files of session %s", id)
	}
	return files.Send(ctx, dir, w)
}

// open returns the files of a session that has moved, as a stream.
func (l *leftFiles) open(ctx context.Context, rec profiles.Session) (io.ReadCloser, error) {
	if !l.isDir(rec.ID, rec.RunDir) { // it was on another node
		l.mu.Lock()
		from := l.from
		l.mu.Unlock()
		return from.Files(ctx, rec.NodeID, rec.ID)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(l.give(ctx, rec.ID, w)) }()
	return r, nil
}

// filesPatience is how long nodes wait for one that has the files of a session, and does not have
// its lease.
const filesPatience = time.Minute

// fetch stores the downloads and uploads of a session that has moved in the run directory of its
// new Chrome. was is the session's record; if it has not moved, or is nil, fetch does nothing. If the
// files are lost, the report says so. most limits their bytes; 0: nothing does.
func (l *leftFiles) fetch(ctx context.Context, was *profiles.Session, up restore.StartResult, most int64) error {
	const op = "session.fetch_files"
	var moved save.Moved
	if was == nil || was.Reason.Code != profiles.ReasonMoved && was.Reason.Code != profiles.ReasonNotMoved ||
		json.Unmarshal(was.Outcome, &moved) != nil || moved.Files == 0 {
		return nil
	}
	if was.Reason.Code == profiles.ReasonNotMoved {
		l.lost(*was, up, moved.Files, "were kept on node "+was.NodeID+" only until the nodes had given the session up")
		return nil
	}
	r, err := l.open(ctx, *was)
	switch ended := fault.Is(err, fault.NodeNotFound); {
	case ended && l.now().Sub(was.EndedAt) < filesPatience:
		return fault.Wrap(err, fault.NodeUnavailable, op, "node "+was.NodeID+", which has the session's files, has no lease; trying again")
	case ended || fault.Is(err, fault.FileNotFound):
		l.lost(*was, up, moved.Files, "were on node "+was.NodeID+", which has ended before another node had them")
		return nil
	case err != nil:
		return err
	}
	err = files.Receive(ctx, up.Chrome.Dir(), r, most)
	_ = r.Close() // it was only read
	return err
}

// lost reports that the files of a session are lost. why continues "they".
func (l *leftFiles) lost(was profiles.Session, up restore.StartResult, n int, why string) {
	l.log.Error("the downloads and uploads of a session that has moved are lost", "session", was.ID, "node", was.NodeID, "files", n)
	if up.Report != nil {
		up.Report.Warn("the downloads and uploads of the session are lost: they " + why)
	}
}
