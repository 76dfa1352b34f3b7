package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
)

// rewrapArchive writes a new archive header, if one is needed, reads it back, and returns
// the archive's stored size. The caller holds the archive's lock.
func (f archiveFiles) rewrapArchive(ctx context.Context, key Key, s *Snapshot, retire []string) (written bool, size int64, err error) {
	var bound *Archive
	called, sealedTo := key.String(), []string(nil)
	if s != nil {
		called, bound, sealedTo = s.ID, &s.Archive, s.Recipients
	}
	src, err := f.store.Open(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return false, 0, damaged(called, "its archive is missing", err)
	}
	if err != nil {
		return false, 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	raw := &rawReader{ctx: ctx, src: src, sum: newPayloadSum()}
	head, rest, err := readHeader(raw)
	switch {
	case raw.err != nil:
		return false, 0, raw.err
	case err != nil:
		return false, 0, damaged(called, "its archive has no header", err)
	}
	newHead, to, err := f.keys.rewrapHeader(head, called, sealedTo, retire)
	if err != nil {
		return false, 0, err
	}
	if newHead == nil {
		stat, err := f.store.Stat(ctx, key)
		return false, stat.Size, err
	}
	sum, err := f.copyUnder(ctx, key, newHead, rest, raw, called, bound)
	if err != nil {
		return false, 0, err
	}
	return true, sum.Size, f.readBack(ctx, key, to)
}

// copyUnder replaces an archive with a new header and the old payload. It first reads the
// whole payload with the new header and checks that it is the bound one.
func (f archiveFiles) copyUnder(ctx context.Context, key Key, head []byte, payload io.Reader, raw *rawReader, called string, bound *Archive) (Sum, error) {
	up, err := f.store.Upload(ctx)
	if err != nil {
		return Sum{}, err
	}
	defer func() { _ = up.Abort() }() // a temporary file that cannot be dropped is removed when the store is next opened
	below := &stickyWriter{w: up, sum: sha256.New()}
	copied := io.TeeReader(io.MultiReader(bytes.NewReader(head), payload), below)
	plain, err := f.keys.open(copied, called, nil)
	if err == nil {
		_, err = io.Copy(io.Discard, plain)
	}
	switch {
	case raw.err != nil:
		return Sum{}, raw.err
	case below.err != nil:
		return Sum{}, below.err
	case err != nil:
		return Sum{}, damaged(called, "its sealed bytes do not decrypt", err)
	case bound != nil && (raw.sum.size != bound.PayloadSize || raw.sum.hex() != bound.PayloadSHA256):
		return Sum{}, damaged(called, "its sealed payload is not the one that was saved", nil)
	}
	return below.Sum(), up.Replace(ctx, key, below.Sum())
}

// readBack opens the header that is stored now.
func (f archiveFiles) readBack(ctx context.Context, key Key, to []string) (err error) {
	src, err := f.store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	raw := &rawReader{ctx: ctx, src: src, sum: newPayloadSum()}
	head, _, err := readHeader(raw)
	if raw.err != nil {
		return raw.err
	}
	var named []string
	if err == nil {
		_, named, err = f.keys.fileKey(head)
	}
	if err != nil || !sameNames(named, to) {
		return &fault.Error{Code: fault.StoreFailed, Op: "snapshot.rewrap", Message: "an archive's new header was written, but reading it back returned other bytes", Err: err}
	}
	return nil
}
