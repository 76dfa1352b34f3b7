package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
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

// UnsealUpload writes what an uploaded sealed archive holds to plain, if the file is one: an age
// file of a tar.zst. It must open with an identity of the vault; otherwise the error is
// invalid_import and names the recipients. It only decrypts: nobody has vouched for the
// plaintext, because everybody may seal to a recipient. Errors of plain keep their code.
func (v *Vault) UnsealUpload(ctx context.Context, file *os.File, plain io.Writer) (sealed bool, err error) {
	const op = "snapshot.unseal"
	info, err := file.Stat()
	if err != nil {
		return false, fault.Wrap(err, fault.Internal, op, "")
	}
	content := func() io.Reader { return bufio.NewReader(io.NewSectionReader(file, 0, info.Size())) }
	intro := make([]byte, len(ageIntro))
	if _, err := io.ReadFull(content(), intro); err != nil || string(intro) != ageIntro {
		return false, nil //nolint:nilerr // a file that is too short is no archive
	}
	if err := v.keys.checkOpens(content()); err != nil {
		return true, err
	}
	tar, err := age.Decrypt(content(), &opener{identities: v.keys.identities})
	if err == nil {
		buffered := bufio.NewReader(&boundedReader{ctx: ctx, r: tar, left: info.Size()})
		var magic []byte
		if magic, err = buffered.Peek(len(zstdMagic)); err == nil && !bytes.Equal(magic, zstdMagic) {
			err = irregular("its archive is sealed and does not hold a tar.zst")
		}
		if err == nil || err == io.EOF {
			_, err = io.Copy(plain, buffered)
		}
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return true, err
	}
	return true, new(Foreign).fail(ctx, err)
}

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
