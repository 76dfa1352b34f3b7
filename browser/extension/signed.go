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
	to := &packedWriter{to: diskWriter{into}, mac: s.mac(sha)}
	if err := s.catalogue.PackedExtension(ctx, sha, to); err != nil {
		return nil, err
	}
	if len(to.begin) < len(to.mac) {
		return nil, unusable(errUnsigned)
	}
	return io.NewSectionReader(into, int64(len(to.mac)), to.size-int64(len(to.mac))), nil
}

// maxPacked bounds a packed extension, in bytes: a zip of files that cannot be compressed, whose
// names are as long as they may be, is smaller.
const maxPacked = 2 * maxBytes

var errUnsigned = errors.New("it is not signed with this daemon's archive key")

// packedWriter writes a packed extension. It refuses one that does not begin with the HMAC before
// more of it is read, and one that is too large: anybody who can write to the catalogue could
// otherwise fill the disk.
type packedWriter struct {
	to    io.Writer
	mac   []byte
	begin []byte // at most as long as mac
	size  int64
}

func (p *packedWriter) Write(b []byte) (int, error) {
	p.begin = append(p.begin, b[:min(len(b), len(p.mac)-len(p.begin))]...)
	if len(p.begin) == len(p.mac) && !hmac.Equal(p.begin, p.mac) {
		return 0, unusable(errUnsigned)
	}
	if p.size += int64(len(b)); p.size > maxPacked {
		return 0, unusable(errors.New("it is too large"))
	}
	return p.to.Write(b)
}

// unusable is the error for stored files that cannot be used. The caller has uploaded nothing.
func unusable(cause error) error {
	return fault.Wrap(cause, fault.StoreFailed, "extension.fetch", "the stored files of the extension cannot be used; delete the extension and upload it again")
}
