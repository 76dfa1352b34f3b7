package session

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/files"
)

// leftFiles are the downloads and uploads of sessions that this node has ended as moved. No
// snapshot contains them, so their run directory stays until the session lives again, and the
// node that continues it fetches them. Its methods are safe for concurrent use.
type leftFiles struct {
	mu   sync.Mutex
	from Destinations         // the other nodes
	held map[string]heldFiles // by session
}

// heldFiles is a run directory that is kept.
type heldFiles struct {
	dir     *browser.Dir
	release func()
}

func newLeftFiles() *leftFiles {
	return &leftFiles{from: noDestinations{}, held: map[string]heldFiles{}}
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
	if dir := l.dir(rec.ID); dir == nil || dir.Name() != rec.RunDir { // it was on another node
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

// bring brings the files of a session that has moved to its new run directory. lost says that
// they are lost; "": they are not. most limits their bytes; 0: nothing does.
func (l *leftFiles) bring(ctx context.Context, rec profiles.Session, dir *browser.Dir, most int64, now time.Time) (lost string, err error) {
	r, err := l.open(ctx, rec)
	if fault.Is(err, fault.NodeNotFound) && now.Sub(rec.EndedAt) < filesPatience {
		return "", fault.Wrap(err, fault.NodeUnavailable, "session.bring_files", "node "+rec.NodeID+", which has the session's files, has no lease; trying again")
	}
	if fault.Is(err, fault.NodeNotFound) || fault.Is(err, fault.FileNotFound) {
		return "the downloads and uploads of the session are lost: they were on node " + rec.NodeID + ", which has ended before the session had another node", nil
	}
	if err != nil {
		return "", err
	}
	err = files.Receive(ctx, dir, r, most)
	_ = r.Close() // it was only read
	return "", err
}
