package snapshot

import (
	"bytes"
	"io"

	"github.com/stasisd/stasis/fault"
)

// Seal encrypts a small secret to the archives' recipients. The caller keeps the result
// outside the store.
func (v *Vault) Seal(plain []byte) ([]byte, error) {
	var sealed bytes.Buffer
	err := v.keys.seal(&sealed, func(w io.Writer) error {
		_, err := w.Write(plain)
		return err
	})
	return sealed.Bytes(), fault.Wrap(err, fault.Internal, "snapshot.seal", "")
}

// Unseal opens the output of Seal. It is identity_missing if no identity here opens it,
// and archive_damaged if it is incomplete.
func (v *Vault) Unseal(sealed []byte) ([]byte, error) {
	const op = "snapshot.unseal"
	r, err := v.keys.open(bytes.NewReader(sealed), "", nil)
	if fault.Is(err, fault.IdentityMissing) {
		return nil, err
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.ArchiveDamaged, op, "the sealed data cannot be opened")
	}
	plain, err := io.ReadAll(r)
	return plain, fault.Wrap(err, fault.ArchiveDamaged, op, "the sealed data is damaged")
}

// RewrapSealed writes a new header for the output of Seal, as [Vault.Rewrap] does. It
// returns nil if none is needed. Errors are those of Unseal.
func (v *Vault) RewrapSealed(sealed []byte, retire []string) ([]byte, error) {
	return v.keys.rewrapSealed(sealed, "", nil, retire)
}
