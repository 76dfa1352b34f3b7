package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
)

// archive copies an archive to the destination, unless the same archive is there. ok
// reports that the destination has it now. document is the key of the document that names
// it.
func (c *copier) archive(ctx context.Context, document Key, a Archive, f Finding) (ok bool, err error) {
	d, payload := digestOf(a.ID), digestOf(a.PayloadSHA256)
	if c.same[d] == payload {
		return true, nil
	}
	key, err := ArchiveKey(a.ID)
	if err != nil {
		return false, err
	}
	f.Key = key.path
	_, err = c.to.Stat(ctx, key)
	switch {
	case err == nil:
		ok, err = c.present(ctx, key, a, f)
	case fault.Is(err, fault.SnapshotNotFound):
		ok, err = c.copyArchive(ctx, document, key, a, f)
	}
	if ok && err == nil {
		c.same[d] = payload
	}
	return ok, err
}

// present compares the archive that the destination already has. Its header may differ,
// if it was sealed to other recipients. It stays.
func (c *copier) present(ctx context.Context, key Key, a Archive, f Finding) (bool, error) {
	sum, err := payloadOf(ctx, c.to, key)
	if isStoreError(err) {
		return false, err
	}
	if err == nil && sum.hex() == a.PayloadSHA256 && sum.size == a.PayloadSize {
		c.out.SameArchives++
		return true, nil
	}
	f.Kind, f.What = OtherObject, "the destination keeps a different archive under this name"
	return false, c.refuse(f)
}

// copyArchive writes an archive and reads it back. An archive that is missing or damaged
// in the source is reported, unless its document was deleted meanwhile.
func (c *copier) copyArchive(ctx context.Context, document, key Key, a Archive, f Finding) (ok bool, err error) {
	src, err := c.from.Open(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		if _, statErr := c.from.Stat(ctx, document); fault.Is(statErr, fault.SnapshotNotFound) {
			return false, nil
		}
		f.Kind, f.What = ArchiveMissing, "its archive is missing in the source"
		return false, c.refuse(f)
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	up, err := c.to.Upload(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, up.Abort()) }()
	raw := &rawReader{ctx: ctx, src: src, sum: newPayloadSum()}
	below := &stickyWriter{w: up, sum: sha256.New()}
	_, err = io.Copy(&progressWriter{c, below}, raw)
	switch {
	case raw.err != nil:
		return false, raw.err
	case below.err != nil:
		return false, below.err
	case err != nil || raw.sum.hex() != a.PayloadSHA256 || raw.sum.size != a.PayloadSize:
		f.Kind, f.What = ArchiveDamaged, "its archive in the source differs from the one that was saved"
		return false, c.refuse(f)
	}
	created, err := up.Commit(ctx, key, below.Sum())
	if err != nil {
		return false, err
	}
	if !created { // another copy has written it meanwhile
		return c.present(ctx, key, a, f)
	}
	c.out.Archives++
	sum, err := payloadOf(ctx, c.to, key)
	if isStoreError(err) {
		return false, err
	}
	if err != nil || sum.hex() != a.PayloadSHA256 || sum.size != a.PayloadSize {
		return false, c.notAsWritten(ctx, key)
	}
	return true, nil
}

// isStoreError reports whether an error comes from a store, and not from the data that was
// read.
func isStoreError(err error) bool {
	var known *fault.Error
	return errors.As(err, &known)
}

// progressWriter reports how many archive bytes were written.
type progressWriter struct {
	c *copier
	w io.Writer
}

func (w *progressWriter) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.c.out.Bytes += int64(n)
	w.c.progress()
	return n, err
}
