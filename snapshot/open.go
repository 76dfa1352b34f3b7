package snapshot

import (
	"context"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
)

// OpenArchive returns the snapshot's tar.zst, unsealed, as it streams from the store. The
// bytes are verified only when Read has returned io.EOF. Damage is an archive_damaged
// error from Read, after some bytes were already returned. The caller closes the reader.
// ctx must not end before.
func (v *Vault) OpenArchive(ctx context.Context, s Snapshot) (io.ReadCloser, error) {
	return v.openArchive(ctx, s)
}

func (v *Vault) openArchive(ctx context.Context, s Snapshot) (*sealedReader, error) {
	if err := v.keys.checkArchiveID(s); err != nil {
		return nil, err
	}
	key, err := ArchiveKey(s.Archive.ID)
	if err != nil {
		return nil, err
	}
	return v.files.unseal(ctx, key, s.ID, s.Recipients, &s.Archive)
}

// Verify reads a snapshot's archive to its end and compares everything that the document
// binds. It writes nothing. Errors are those of Unpack.
func (v *Vault) Verify(ctx context.Context, s Snapshot) (err error) {
	r, err := v.openArchive(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return v.files.verify(ctx, r, s.Archive)
}

// irregular says what is wrong with an archive, in words that a client may see.
type irregular string

func (i irregular) Error() string { return string(i) }

// readFault returns the error of a read of an archive. It is nil only if the archive was
// read to its end and is what the document binds.
func readFault(ctx context.Context, r *sealedReader, got contents, want Archive, err error) error {
	var wrong irregular
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.read", "reading the archive was cancelled")
	case r.err != nil:
		return r.err
	case errors.As(err, &wrong):
		return damaged(r.id, string(wrong), err)
	case err != nil:
		return damaged(r.id, "its archive is not a complete tar.zst", err)
	case got.Size != want.TarSize || got.SHA256 != hashBytes(want.TarSHA256) || got.Entries != want.Entries, !want.Head.is(got.Head):
		return damaged(r.id, "its archive does not hold what was saved", nil)
	}
	// The decompressor may have stopped before the end of the sealed bytes.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return r.err
	}
	return nil
}
