package snapshot

import (
	"bytes"
	"io"

	"github.com/stasisd/stasis/fault"
)

// Seal encrypts a small secret that is kept outside the store, to the
// recipients that archives are sealed to.
func (v *Vault) Seal(plain []byte) ([]byte, error) {
	var sealed bytes.Buffer
	err := v.keys.seal(&sealed, func(w io.Writer) error {
		_, err := w.Write(plain)
		return err
	})
	return sealed.Bytes(), fault.Wrap(err, fault.Internal, "snapshot.seal", "")
}

// Unseal opens what Seal has made: identity_missing where no identity here
// opens it, archive_damaged where it is not whole.
func (v *Vault) Unseal(sealed []byte) ([]byte, error) {
	const op = "snapshot.unseal"
	r, err := v.keys.open(bytes.NewReader(sealed), "", nil)
	if fault.Is(err, fault.IdentityMissing) {
		return nil, err
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.ArchiveDamaged, op, "what was sealed cannot be opened")
	}
	plain, err := io.ReadAll(r)
	return plain, fault.Wrap(err, fault.ArchiveDamaged, op, "what was sealed is damaged")
}

// RewrapSealed writes the header of what Seal has made anew, as [Vault.Rewrap] does;
// nil where it is sealed as it should be. Errors are those of Unseal.
func (v *Vault) RewrapSealed(sealed []byte, retire []string) ([]byte, error) {
	return v.keys.rewrapSealed(sealed, "", nil, retire)
}
