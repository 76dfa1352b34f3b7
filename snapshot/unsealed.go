package snapshot

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"filippo.io/age"
)

// This file reads sealed files that a caller uploads.

// checkOpens returns the reason why a sealed file does not open here, or nil.
func (k Keys) checkOpens(src io.Reader) error {
	o := &opener{identities: k.identities}
	_, err := age.Decrypt(src, o)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none) && o.named == nil:
		return foreign(err, "the archive is sealed, and no identity of this daemon opens it; its header names no recipients")
	case errors.As(err, &none):
		return foreign(err, "the archive is sealed, and no identity of this daemon opens it; it is sealed to "+strings.Join(o.named, ", "))
	case err != nil:
		return foreign(err, "the archive is sealed and damaged")
	}
	return nil
}

// openSealedTar returns the tar in a sealed tar.zst.
func (k Keys) openSealedTar(src io.Reader) (io.ReadCloser, error) {
	plain, err := age.Decrypt(src, &opener{identities: k.identities})
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(plain)
	magic, err := buffered.Peek(len(zstdMagic))
	if err != nil && err != io.EOF {
		return nil, err
	}
	if !bytes.Equal(magic, zstdMagic) {
		return nil, irregular("its archive is sealed and does not hold a tar.zst")
	}
	return format(0).OpenReader(buffered)
}

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
