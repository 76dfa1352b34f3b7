package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/stasisd/stasis/fault"
)

// SealedArchive streams an archive as an age file. The data is verified only when Read
// has returned io.EOF; damage is an error from Read. The caller closes it.
type SealedArchive struct {
	Size          int64  // bytes
	PayloadSHA256 string // of the bytes after age's header, hex

	id   string
	src  io.ReadCloser
	raw  *rawReader
	body io.Reader
	want Archive
}

// OpenSealed returns a snapshot's archive, sealed to the recipients ("age1…"). That needs
// an identity. Without recipients the archive is returned as stored, and no identity is
// needed. The payload is the stored one under a new header. Errors are those of
// [Vault.OpenArchive], and config for an invalid recipient.
func (v *Vault) OpenSealed(ctx context.Context, s Snapshot, to []string) (*SealedArchive, error) {
	recipients, err := ParseRecipients(to)
	if err != nil {
		return nil, err
	}
	if err := v.keys.checkArchiveID(s); err != nil {
		return nil, err
	}
	key, err := ArchiveKey(s.Archive.ID)
	if err != nil {
		return nil, err
	}
	src, err := v.store.Open(ctx, key)
	if fault.Is(err, fault.SnapshotNotFound) {
		return nil, damaged(s.ID, "its archive is missing", err)
	}
	if err != nil {
		return nil, err
	}
	raw := &rawReader{ctx: ctx, src: src, sum: newPayloadSum()}
	head, rest, err := readHeader(raw)
	switch {
	case raw.err != nil:
		err = raw.err
	case err != nil:
		err = damaged(s.ID, "its archive has no header", err)
	case len(recipients) > 0:
		var k Keys
		for _, r := range recipients {
			k.sealTo(r)
		}
		head, err = v.keys.headerFor(head, s, k)
	}
	if err != nil {
		return nil, errors.Join(err, src.Close())
	}
	return &SealedArchive{Size: int64(len(head)) + s.Archive.PayloadSize, PayloadSHA256: s.Archive.PayloadSHA256,
		id: s.ID, src: src, raw: raw, body: io.MultiReader(bytes.NewReader(head), rest), want: s.Archive}, nil
}

// headerFor opens a header and writes a new one for the other recipients only.
func (k Keys) headerFor(head []byte, s Snapshot, others Keys) ([]byte, error) {
	key, named, err := k.fileKey(head)
	if missing := k.identityMissing(err, s.ID, named, s.Recipients); missing != nil {
		return nil, missing
	}
	if err != nil {
		return nil, damaged(s.ID, "its age header cannot be opened", err)
	}
	return newHeader(key, others.recipients)
}

// Read implements io.Reader.
func (a *SealedArchive) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	switch {
	case a.raw.err != nil:
		return n, a.raw.err
	case err == io.EOF && (a.raw.sum.size != a.want.PayloadSize || a.raw.sum.hex() != a.want.PayloadSHA256), a.raw.sum.size > a.want.PayloadSize:
		return 0, damaged(a.id, "its sealed payload is not the one that was saved", nil)
	}
	return n, err
}

// Close implements io.Closer.
func (a *SealedArchive) Close() error { return a.src.Close() }

// PayloadSHA256 reads an age file to its end and returns the hash, in hex, of the bytes
// after its header. It needs no identity.
func PayloadSHA256(src io.Reader) (string, error) {
	sum := newPayloadSum()
	if _, err := io.Copy(sum, src); err != nil {
		return "", err
	}
	if sum.head != nil {
		return "", errNoHeader
	}
	return sum.hex(), nil
}
