package library

import (
	"context"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
)

// Archive streams a snapshot's archive, unsealed. The data is verified only when the
// reader has returned io.EOF; damage is an error of the reader. The caller closes it.
func (l *Library) Archive(ctx context.Context, c access.Caller, id string) (io.ReadCloser, error) {
	row, err := l.findSecret(ctx, c, id)
	if err != nil {
		return nil, err
	}
	release, err := l.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		return nil, err
	}
	saved, err := l.snapshots.open(ctx, row)
	if err != nil {
		release()
		return nil, err
	}
	archive, err := l.archives.OpenArchive(ctx, saved)
	if err != nil {
		release()
		return nil, err
	}
	return l.hold(ctx, c, archive, release)
}

// heldArchive prevents the removal of its snapshot until it is closed. Reading fails once
// the caller's key is deleted.
type heldArchive struct {
	io.Reader
	closer  io.Closer
	release func()
}

func (l *Library) hold(ctx context.Context, c access.Caller, archive io.ReadCloser, release func()) (io.ReadCloser, error) {
	ctx, leave, err := l.keys.CallContext(ctx, c)
	if err != nil {
		release()
		return nil, errors.Join(err, archive.Close())
	}
	return &heldArchive{access.Reader(ctx, archive), archive, func() { leave(); release() }}, nil
}

// Close ends the reading and allows the removal of the snapshot.
func (a *heldArchive) Close() error {
	defer a.release()
	return a.closer.Close()
}

// SealedArchive is a stream of an archive as an age file. It is complete only after it
// was read to its end.
type SealedArchive struct {
	io.ReadCloser
	Size          int64  // bytes
	PayloadSHA256 string // of everything after age's header, in hex
}

// SealedArchive streams a snapshot's archive sealed to the recipients to ("age1…").
// Without recipients it streams the archive as stored, sealed to the daemon's own. The
// caller closes it.
func (l *Library) SealedArchive(ctx context.Context, c access.Caller, id string, to []string) (SealedArchive, error) {
	if _, err := snapshot.ParseRecipients(to); err != nil {
		return SealedArchive{}, fault.Wrap(err, fault.InvalidField, "library.archive", fault.MessageOf(err))
	}
	row, err := l.findSecret(ctx, c, id)
	if err != nil {
		return SealedArchive{}, err
	}
	release, err := l.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		return SealedArchive{}, err
	}
	saved, err := l.snapshots.open(ctx, row)
	if err != nil {
		release()
		return SealedArchive{}, err
	}
	sealed, err := l.archives.OpenSealed(ctx, saved, to)
	if err != nil {
		release()
		return SealedArchive{}, err
	}
	held, err := l.hold(ctx, c, sealed, release)
	return SealedArchive{ReadCloser: held, Size: sealed.Size, PayloadSHA256: sealed.PayloadSHA256}, err
}
