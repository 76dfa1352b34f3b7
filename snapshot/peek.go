package snapshot

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
)

// Peek reads a snapshot's archive to its end, with the checks of [Vault.Unpack]. It
// returns those of the named files that the archive has, at most [MaxKept] bytes each. It
// writes nothing. Errors are those of Unpack.
func (v *Vault) Peek(ctx context.Context, s Snapshot, names ...string) (files map[string][]byte, err error) {
	r, err := v.openArchive(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	files = map[string][]byte{}
	entry := func(h *tar.Header, body io.Reader) error {
		if h.Typeflag != tar.TypeReg || !slices.Contains(names, h.Name) {
			return nil
		}
		if h.Size > MaxKept {
			return irregular("its archive holds a state document that is too large")
		}
		var content bytes.Buffer // grows with the bytes that arrive, not with the claimed size
		_, err := io.Copy(&content, body)
		files[h.Name] = content.Bytes()
		return err
	}
	got, err := extract(ctx, r, extraction{maxTar: s.Archive.TarSize, headEntries: s.Archive.Head.Entries, entry: entry})
	if err := readFault(ctx, r, got, s.Archive, err); err != nil {
		return nil, err
	}
	return files, nil
}
