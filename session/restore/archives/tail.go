package archives

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot"
)

// tail is the part of an archive after its head, which is unpacked while the session's Chrome
// runs.
type tail struct {
	proceed func()        // lets the unpacking go on
	cancel  func()        // ends it
	done    chan struct{} // closed at its end
	err     error         // its result, once done is closed
}

var _ restore.Tail = (*tail)(nil)

// Wait is documented at [restore.Tail].
func (t *tail) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		t.Stop()
		return t.err
	}
	t.proceed()
	defer context.AfterFunc(ctx, t.cancel)()
	<-t.done
	return t.err
}

// Stop is documented at [restore.Tail].
func (t *tail) Stop() {
	t.cancel()
	<-t.done
}

// unpackHead unpacks the head of an archive to a user data directory. The tail is unpacked to
// another folder, which is made first.
func (a *Archives) unpackHead(ctx context.Context, saved snapshot.Snapshot, userDataDir, folder string, o snapshot.UnpackOptions) (head snapshot.UnpackResult, _ *tail, err error) {
	err = os.MkdirAll(folder, 0o700)
	if err == nil {
		o.Tail, err = os.OpenRoot(folder)
	}
	if err != nil {
		return head, nil, fault.Wrap(err, fault.Internal, "archives.unpack", "the folder for the environment's caches could not be created")
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopFollowing := context.AfterFunc(ctx, cancel) // until the head is there
	proceed, headDone := make(chan struct{}), make(chan snapshot.UnpackResult, 1)
	t := &tail{proceed: sync.OnceFunc(func() { close(proceed) }), cancel: cancel, done: make(chan struct{})}
	names := tailNames{allowed: func(name string) bool { return a.cfg.Datadirs.InTail(name) && a.accepts(name) }}
	o.Head = func(got snapshot.UnpackResult) error {
		names.begin()
		headDone <- got
		select {
		case <-proceed:
			return nil
		case <-running.Done():
			return running.Err()
		}
	}
	o.Accept = func(name string) bool { return names.accept(name) && a.accepts(name) }
	go func() {
		defer close(t.done)
		defer cancel()
		_, err := a.cfg.Vault.Unpack(running, saved, userDataDir, o)
		if err == nil {
			err = names.check(saved.ID)
		}
		t.err = errors.Join(err, o.Tail.Close())
	}()
	select {
	case head = <-headDone:
		stopFollowing()
		return head, t, nil
	case <-t.done: // before the end of the head
		return head, nil, t.err
	}
}

// tailNames checks the names in the tail of an archive. Chrome waits only for files of the
// Cache API. Another version of Stasis may put others there.
type tailNames struct {
	allowed func(name string) bool
	begun   bool // the head is over
	foreign bool // a name is not allowed
}

func (n *tailNames) begin() { n.begun = true }

func (n *tailNames) accept(name string) bool {
	if n.begun && !n.allowed(name) {
		n.foreign = true
	}
	return !n.foreign
}

func (n *tailNames) check(snapshotID string) error {
	if !n.foreign {
		return nil
	}
	return fault.New(fault.Unsupported, "archives.unpack",
		"snapshot %s has files in the tail of its archive that this version does not expect there; restore it with the version that saved it", snapshotID)
}
