package snapshot

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// DefaultLimits hold where [UnpackOptions] give none.
var DefaultLimits = Limits{Entries: 200_000, Bytes: 8 << 30, Names: 32 << 20}

// MaxKept bounds each file that Unpack keeps in memory, in bytes.
const MaxKept = 64 << 20

// UnpackOptions say how an archive is laid down.
type UnpackOptions struct {
	Limits Limits // zero fields: [DefaultLimits]
	// Accept is asked for every entry that is not kept; what it rejects is
	// listed in Refused and not written. nil accepts all. A folder that is
	// rejected does not reject what lies in it.
	Accept func(name string) bool
	// Keep names files that are returned as bytes and not written to disk, at
	// most [MaxKept] each.
	Keep []string
	// BeforeKept is called with the size of a file of Keep, in bytes, before it is
	// read; an error, which is that of ctx, ends the unpacking. nil: nobody waits.
	BeforeKept func(size int64) error
	// Owner is whom files and folders are given to, dst too if it was made;
	// nil leaves them to the daemon's own user.
	Owner *Owner
}

// Owner is a Unix user and group.
type Owner struct{ UID, GID int }

// Unpacked tells what an archive brought.
type Unpacked struct {
	Kept    map[string][]byte // by name, those of Keep that were there
	Entries int               // files and folders written or kept
	Bytes   int64             // of those files
	Refused []string          // names that Accept rejected, in the archive's order
}

// Unpack lays a snapshot's archive down in dst, which is made (0700) if it is
// not there, and returns only after payload, tar and entries were found to be
// what the document binds. Nothing may use dst before. Files get mode 0600,
// or 0700 if their owner could execute them, folders 0700, and times in whole
// seconds.
//
// The archive is hostile input: a name that is absolute, unclean or given
// twice, anything but files and folders, more than the limits, and every
// damage are archive_damaged, which names the snapshot and what is wrong. After
// any error dst is as it was. A file that dst has already is internal, no room
// in dst is store_full; further identity_missing, store_failed and timeout.
func (v *Vault) Unpack(ctx context.Context, s Snapshot, dst string, o UnpackOptions) (out Unpacked, err error) {
	o.Limits = o.Limits.orDefault()
	r, err := v.openArchive(ctx, s)
	if err != nil {
		return Unpacked{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	u, err := newUnpacker(dst, o)
	if err != nil {
		return Unpacked{}, localFault(s.ID, err)
	}
	got, err := extract(ctx, r, s.Archive.TarSize, func(h *tar.Header, body io.Reader) error { return u.entry(h, body) })
	var local *localError
	if errors.As(err, &local) && ctx.Err() == nil {
		err = localFault(s.ID, local)
	} else {
		err = readFault(ctx, r, got, s.Archive, err)
	}
	if err == nil {
		err = localFault(s.ID, u.finish())
	}
	if err != nil {
		return Unpacked{}, errors.Join(err, localFault(s.ID, u.undo()))
	}
	return u.out, nil
}

func (l Limits) orDefault() Limits {
	if l.Entries == 0 {
		l.Entries = DefaultLimits.Entries
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	if l.Names == 0 {
		l.Names = DefaultLimits.Names
	}
	return l
}

// localError is a failure of the disk that is unpacked to.
type localError struct{ err error }

func (l *localError) Error() string { return l.err.Error() }
func (l *localError) Unwrap() error { return l.err }

func local(err error) error {
	if err == nil {
		return nil
	}
	return &localError{err}
}

func localFault(id string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StoreFull, "snapshot.unpack", "no room left to unpack snapshot "+id)
	case errors.Is(err, os.ErrExist):
		return fault.Wrap(err, fault.Internal, "snapshot.unpack", "the folder to unpack snapshot "+id+" to has such a file already")
	}
	return fault.Wrap(err, fault.Internal, "snapshot.unpack", "snapshot "+id+" could not be written to disk")
}

// localWriter marks the errors of a file being written.
type localWriter struct{ f *os.File }

func (w localWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	return n, local(err)
}
