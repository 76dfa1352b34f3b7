package snapshot

import (
	"context"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
)

// archiveFiles reads and writes the archives of a store.
type archiveFiles struct {
	store Store
	keys  Keys
}

// unseal opens an archive for reading. If want is nil, nothing is compared. sealedTo
// lists the recipients that the document names.
func (f archiveFiles) unseal(ctx context.Context, key Key, id string, sealedTo []string, want *Archive) (*sealedReader, error) {
	src, err := f.store.Open(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil, damaged(id, "its archive is missing", err)
	}
	if err != nil {
		return nil, err
	}
	r := &sealedReader{id: id, raw: &rawReader{ctx: ctx, src: src, sum: newPayloadSum()}, want: want}
	if r.plain, err = f.keys.open(r.raw, id, sealedTo); err == nil {
		return r, nil
	}
	if !fault.Is(err, fault.IdentityMissing) {
		err = r.fail(err)
	}
	return nil, errors.Join(err, src.Close())
}

func (f archiveFiles) verify(ctx context.Context, r *sealedReader, want Archive) error {
	got, err := extract(ctx, r, extraction{maxTar: want.TarSize, headEntries: want.Head.Entries})
	return readFault(ctx, r, got, want, err)
}

// fits reports whether a stored archive has the size of its payload plus its current
// header. The header's size changes when the archive is sealed to other recipients.
func (f archiveFiles) fits(ctx context.Context, key Key, size int64, a Archive) (fits bool, err error) {
	src, err := f.store.Open(ctx, key)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	head, err := io.ReadAll(io.LimitReader(src, maxHeader))
	if err != nil {
		return false, fault.Wrap(err, fault.StoreFailed, "snapshot.check", "")
	}
	end := headerEnd(head)
	return end > 0 && size == int64(end)+a.PayloadSize, nil
}

// payload returns the sum of the payload that is stored under a key.
func (f archiveFiles) payload(ctx context.Context, key Key) (*payloadSum, error) {
	return payloadOf(ctx, f.store, key)
}

func payloadOf(ctx context.Context, s Store, key Key) (sum *payloadSum, err error) {
	src, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	raw := &rawReader{ctx: ctx, src: src, sum: newPayloadSum()}
	_, err = io.Copy(io.Discard, raw)
	return raw.sum, err
}
