package archives

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// rest is the part of an archive after its head, which is unpacked while the session's Chrome
// runs. It implements the browser's Rest.
type rest struct {
	proceed func()        // lets the unpacking go on
	cancel  func()        // ends it
	done    chan struct{} // closed at its end
	err     error         // its result, once done is closed
}

// Wait lets the unpacking go on and waits for its end. The end of ctx ends it.
func (r *rest) Wait(ctx context.Context) error {
	r.proceed()
	defer context.AfterFunc(ctx, r.cancel)()
	<-r.done
	return r.err
}

// stop ends the unpacking and waits for its end.
func (r *rest) stop() {
	r.cancel()
	<-r.done
}

// unpackHead unpacks the head of an archive to a user data directory. The rest is unpacked to
// another folder, which is made first.
func (a *Archives) unpackHead(ctx context.Context, saved snapshot.Snapshot, userDataDir, folder string, o snapshot.UnpackOptions) (head snapshot.UnpackResult, r *rest, err error) {
	err = os.MkdirAll(folder, 0o700)
	if err == nil {
		o.Rest, err = os.OpenRoot(folder)
	}
	if err != nil {
		return head, nil, fault.Wrap(err, fault.Internal, "archives.unpack", "the folder for the environment's caches could not be created")
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopFollowing := context.AfterFunc(ctx, cancel) // until the head is there
	proceed, headDone := make(chan struct{}), make(chan snapshot.UnpackResult, 1)
	r = &rest{proceed: sync.OnceFunc(func() { close(proceed) }), cancel: cancel, done: make(chan struct{})}
	inHead := true
	o.Head = func(got snapshot.UnpackResult) error {
		inHead = false
		headDone <- got
		select {
		case <-proceed:
			return nil
		case <-running.Done():
			return running.Err()
		}
	}
	foreign := false
	o.Accept = func(name string) bool {
		foreign = foreign || !inHead && !a.cfg.Datadirs.Later(name)
		return a.accepts(name)
	}
	go func() {
		defer close(r.done)
		defer cancel()
		_, err := a.cfg.Vault.Unpack(running, saved, userDataDir, o)
		if err == nil && foreign {
			err = fault.New(fault.Unsupported, "archives.unpack",
				"snapshot %s has files after the head of its archive that this version does not expect there; restore it with the version that saved it", saved.ID)
		}
		r.err = errors.Join(err, o.Rest.Close())
	}()
	select {
	case head = <-headDone:
		stopFollowing()
		return head, r, nil
	case <-r.done: // before the end of the head
		return head, nil, r.err
	}
}
