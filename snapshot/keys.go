package snapshot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"filippo.io/age"
)

// Keys seal, open and name archives. Secrets are never printed: formatting a Keys shows
// only its recipients.
type Keys struct {
	recipients []*age.X25519Recipient // to seal to
	identities []*age.X25519Identity  // to open with
	naming     []byte                 // 32 bytes
}

// NewKeys returns keys that open with an identity, and seal to it and to the recipients.
// Without an identity (nil) they only seal. Archive IDs are derived from the secret
// naming.
func NewKeys(identity *age.X25519Identity, naming [32]byte, recipients ...*age.X25519Recipient) Keys {
	k := Keys{naming: naming[:]}
	if identity != nil {
		k.identities = []*age.X25519Identity{identity}
		k.sealTo(identity.Recipient())
	}
	for _, r := range recipients {
		k.sealTo(r)
	}
	return k
}

// sealTo adds a recipient, unless it is there already.
func (k *Keys) sealTo(r *age.X25519Recipient) {
	if !slices.Contains(k.Recipients(), r.String()) {
		k.recipients = append(k.recipients, r)
	}
}

// Recipients returns the public keys that archives are sealed to ("age1…").
func (k Keys) Recipients() []string { return namesOf(k.recipients) }

// IdentityRecipients returns the public keys of the identities. Data sealed to one of
// them can be opened. A node that may write and not read has none.
func (k Keys) IdentityRecipients() []string {
	var list []string
	for _, x := range k.identities {
		list = append(list, x.Recipient().String())
	}
	return list
}

// String shows the recipients and no secret.
func (k Keys) String() string { return strings.Join(k.Recipients(), ",") }

// GoString is String, so that %#v shows no secret either.
func (k Keys) GoString() string { return k.String() }

// archiveID names an archive: HMAC(HMAC(naming secret, owner), SHA-256 of the tar), in
// hex. It hashes the tar before compression, so that another zstd level or library gives
// equal contents the same name. Without the secret, an attacker cannot guess contents from
// names. Nor can they write a document whose archive passes as an owner's.
func (k Keys) archiveID(owner string, tarSHA256 [sha256.Size]byte) string {
	return k.archiveName(owner, tarSHA256, 0)
}

// archiveNames is how many names an archive may have; see [Keys.archiveName].
const archiveNames = 16

// archiveName returns the nth name of an archive. Those after the first are used while another
// node removes, or may still remove, what has the one before.
func (k Keys) archiveName(owner string, tarSHA256 [sha256.Size]byte, n byte) string {
	contents := tarSHA256[:]
	if n > 0 {
		contents = append([]byte{'n', n, ' '}, contents...)
	}
	return hex.EncodeToString(keyed(k.ownerKey(owner), contents))
}

// documentMAC returns the MAC of an owner's document, in hex.
func (k Keys) documentMAC(owner string, body []byte) string {
	return hex.EncodeToString(keyed(k.ownerKey(owner), append([]byte("document "), body...)))
}

func (k Keys) ownerKey(owner string) []byte { return keyed(k.naming, []byte("owner "+owner)) }

// Derive returns a secret for a use outside the vault, derived from the naming secret: 32
// bytes, the same at each start.
func (k Keys) Derive(use string) []byte { return keyed(k.naming, []byte("use "+use)) }

func keyed(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)
}

// checkArchiveID checks that a snapshot's archive is named after its owner and contents.
func (k Keys) checkArchiveID(s Snapshot) error {
	for n := range byte(archiveNames) {
		if k.archiveName(s.Location.Owner, hashBytes(s.Archive.TarSHA256), n) == s.Archive.ID {
			return nil
		}
	}
	return damaged(s.ID, "its document names an archive of another snapshot", nil)
}
