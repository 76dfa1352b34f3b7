package snapshot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"filippo.io/age"
)

// Keys seal, open and name archives. They are never printed: formatting a
// Keys shows its recipients only.
type Keys struct {
	recipients []*age.X25519Recipient // sealed to
	identities []*age.X25519Identity  // opened with
	naming     []byte                 // 32 bytes
}

// NewKeys returns keys that open with an identity and seal to it and to the
// recipients. Without an identity (nil) they seal only. naming is the secret
// that archive IDs are derived from.
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

// sealTo adds a recipient, once.
func (k *Keys) sealTo(r *age.X25519Recipient) {
	if !slices.Contains(k.Recipients(), r.String()) {
		k.recipients = append(k.recipients, r)
	}
}

// Recipients are the public keys that archives are sealed to ("age1…").
func (k Keys) Recipients() []string { return namesOf(k.recipients) }

// Opens are the public keys of the identities: what is sealed to one of them
// can be opened. None are those of a node that may write and not read.
func (k Keys) Opens() []string {
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

// archiveID names an archive: HMAC(HMAC(naming secret, owner), SHA-256 of the
// tar), in hex. The tar and not its compression is hashed, so that another
// zstd level or library gives the same name to the same contents. Who lacks
// the secret can neither tell contents from names nor make a document whose
// archive passes for an owner's.
func (k Keys) archiveID(owner string, tarSHA256 [sha256.Size]byte) string {
	return hex.EncodeToString(keyed(k.ownerKey(owner), tarSHA256[:]))
}

// documentMAC is the MAC of an owner's document, in hex.
func (k Keys) documentMAC(owner string, body []byte) string {
	return hex.EncodeToString(keyed(k.ownerKey(owner), append([]byte("document "), body...)))
}

func (k Keys) ownerKey(owner string) []byte { return keyed(k.naming, []byte("owner "+owner)) }

// Derive is a secret for a use that is not the vault's own, from the naming
// secret: 32 bytes, the same at each start.
func (k Keys) Derive(use string) []byte { return keyed(k.naming, []byte("use "+use)) }

func keyed(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)
}

// checkArchiveID checks that the archive of a snapshot is named after its owner and what is in it.
func (k Keys) checkArchiveID(s Snapshot) error {
	if k.archiveID(s.Location.Owner, tarSum(s.Archive)) != s.Archive.ID {
		return damaged(s.ID, "its document names an archive that is not its own", nil)
	}
	return nil
}
