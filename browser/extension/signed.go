package extension

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"os"

	"github.com/stasisd/stasis/fault"
)

// Catalogue keeps packed extensions where several nodes find them.
type Catalogue interface {
	// PackedExtension writes the extension whose files have that hash to w. It returns
	// extension_not_found if no record names them any more, and an error of w with a code
	// unchanged.
	PackedExtension(ctx context.Context, sha256 string, w io.Writer) error
	// AddPackedExtension stores an extension that records name, unless it is stored.
	AddPackedExtension(ctx context.Context, sha256 string, packed *io.SectionReader) error
	// ExtensionFiles lists the hashes of the files that records name, and whether the
	// catalogue has these files.
	ExtensionFiles(ctx context.Context) (stored map[string]bool, err error)
	// RemoveUnusedExtensions removes what is stored and no record names.
	RemoveUnusedExtensions(ctx context.Context) error
}

// Signed are the packed extensions in a catalogue. Each begins with an HMAC of the hash of its
// files, so that a program that can only write to the catalogue cannot add files that run in
// browsers. The zip of [Pack] follows.
type Signed struct {
	catalogue Catalogue
	key       []byte
}

// NewSigned makes Signed. key is a secret that all nodes have.
func NewSigned(c Catalogue, key []byte) *Signed { return &Signed{catalogue: c, key: key} }

func (s *Signed) mac(sha string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("extension " + sha))
	return mac.Sum(nil)
}

// pack packs a folder whose files have that hash into an empty file.
func (s *Signed) pack(ctx context.Context, folder, sha string, to *os.File) (*io.SectionReader, error) {
	if _, err := (diskWriter{to}).Write(s.mac(sha)); err != nil {
		return nil, err
	}
	if err := Pack(ctx, folder, diskWriter{to}); err != nil {
		return nil, err
	}
	info, err := to.Stat()
	if err != nil {
		return nil, storeError(err)
	}
	return io.NewSectionReader(to, 0, info.Size()), nil
}

// read reads the zip of an extension into an empty file. It refuses one that no daemon with
// this key has packed.
func (s *Signed) read(ctx context.Context, sha string, into *os.File) (*io.SectionReader, error) {
	if err := s.catalogue.PackedExtension(ctx, sha, diskWriter{into}); err != nil {
		return nil, err
	}
	info, err := into.Stat()
	if err != nil {
		return nil, storeError(err)
	}
	var mac [sha256.Size]byte
	if _, err := into.ReadAt(mac[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, storeError(err)
	}
	if !hmac.Equal(mac[:], s.mac(sha)) {
		return nil, unusable(errors.New("it is not signed with this daemon's archive key"))
	}
	return io.NewSectionReader(into, int64(len(mac)), info.Size()-int64(len(mac))), nil
}

// unusable is the error for stored files that cannot be used. The caller has uploaded nothing.
func unusable(cause error) error {
	return fault.Wrap(cause, fault.StoreFailed, "extension.fetch", "the stored files of the extension cannot be used; delete the extension and upload it again")
}
