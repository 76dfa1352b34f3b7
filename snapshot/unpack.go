package snapshot

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// DefaultLimits are used for the limits that [UnpackOptions] leaves zero.
var DefaultLimits = Limits{Entries: 200_000, Bytes: 8 << 30, Names: 32 << 20}

// MaxKept limits each file that Unpack keeps in memory, in bytes.
const MaxKept = 64 << 20

// UnpackOptions control how an archive is unpacked.
type UnpackOptions struct {
	Limits Limits // zero fields: [DefaultLimits]
	// Accept is called for every entry that is not in Keep. Rejected entries are listed in
	// Refused and not written. nil accepts all. Rejecting a folder does not reject its
	// contents.
	Accept func(name string) bool
	// Keep names files to return as bytes instead of writing them to disk, at most
	// [MaxKept] each.
	Keep []string
	// BeforeKept is called with the size of a file of Keep, in bytes, before the file is
	// read. It may wait. An error, which is that of ctx, ends the unpacking. It may be nil.
	BeforeKept func(size int64) error
	// Head is called once if the archive has a head, when that is unpacked and verified against
	// the document. The files in dst may be used and moved from then on. The tail is unpacked
	// when Head has returned, below the folder Tail instead of dst. An error of Head ends the
	// unpacking. Without Head, or if the archive has no head, all entries are unpacked to dst.
	Head func(UnpackResult) error
	Tail *os.Root // only with Head; the caller closes it
	// Owner becomes the owner of files and folders, and of dst if Unpack creates it. nil
	// means the daemon's own user.
	Owner *Owner
}

// Owner is a Unix user and group.
type Owner struct{ UID, GID int }

// UnpackResult is the result of [Vault.Unpack].
type UnpackResult struct {
	Kept    map[string][]byte // the files of Keep that the archive has, by name
	Entries int               // files and folders written or kept
	Bytes   int64             // total size of those files
	Refused []string          // names that Accept rejected, in the archive's order
}

// Unpack writes a snapshot's archive to dst, and creates dst (0700) if needed. It returns
// only after it has verified payload, tar and entries against the document; nothing may
// use dst before, except as Head allows. Files get mode 0600, or 0700 if their owner could
// execute them. Folders get 0700. Times are in whole seconds.
//
// The archive is hostile input. These are archive_damaged, with the snapshot's ID and the
// reason: an absolute, unclean or duplicate name, anything but files and folders, more
// than the limits, and every damage. After an error before the call of Head, dst is as
// before; after the call, Tail is. A file that already exists in dst is internal. A full
// disk is store_full. Other errors are identity_missing, store_failed and timeout.
func (v *Vault) Unpack(ctx context.Context, s Snapshot, dst string, o UnpackOptions) (out UnpackResult, err error) {
	o.Limits = o.Limits.orDefault()
	r, err := v.openArchive(ctx, s)
	if err != nil {
		return UnpackResult{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	u, err := newUnpacker(dst, o)
	if err != nil {
		return UnpackResult{}, localFault(s.ID, err)
	}
	x := extraction{maxTar: s.Archive.TarSize, headEntries: s.Archive.Head.Entries, entry: u.entry}
	if o.Head != nil {
		x.head = func(read head) error { return u.headDone(s.Archive.Head.is(read)) }
	}
	got, err := extract(ctx, r, x)
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
		return UnpackResult{}, errors.Join(err, localFault(s.ID, u.undo()))
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
		return fault.Wrap(err, fault.StoreFull, "snapshot.unpack", "the disk is full; cannot unpack snapshot "+id)
	case errors.Is(err, os.ErrExist):
		return fault.Wrap(err, fault.Internal, "snapshot.unpack", "the folder for the files of snapshot "+id+" already has a file of the same name")
	}
	return fault.Wrap(err, fault.Internal, "snapshot.unpack", "snapshot "+id+" could not be written to disk")
}

// localWriter marks write errors as errors of the local disk.
type localWriter struct{ f *os.File }

func (w localWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	return n, local(err)
}
