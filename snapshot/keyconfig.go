package snapshot

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
)

// KeyConfig says where keys come from. The zero value of each field but Dir is
// what a daemon has that was told nothing.
type KeyConfig struct {
	// Dir is the data directory, whose files identity (an age identity file) and
	// archive-key (the naming secret, 32 bytes in hex) only their owner may read.
	// The caller holds it for itself, unless ReadOnly.
	Dir string
	// Identities is the text of an age identity file that comes from elsewhere;
	// Dir/identity is then not looked at. Source names where from, for messages.
	Identities, Source string
	// Recipients are sealed to beside the first identity ("age1…"). Where some
	// are named and there is no identity, none is made: what is sealed cannot be
	// opened here.
	Recipients []string
	// Naming is the naming secret's text in the place of Dir/archive-key.
	Naming string
	// InUse tells whether the store holds archives already: then a key that is
	// missing is a lost one. It is asked only before one would be made.
	InUse func() (bool, error)
	// ReadOnly makes nothing.
	ReadOnly bool
}

// maxRecipients bounds how many a file is sealed to: an age header is read whole.
const maxRecipients = 64

// LoadKeys reads the keys and, on a first start, makes those that are kept in the
// data directory. All identities of the source open; what is sealed from now on is
// sealed to the first of them and to the recipients. A file that was there once and
// is missing is identity_missing: making it anew would leave every snapshot
// unreadable. Of what is wrong with one, config says which it is.
func LoadKeys(c KeyConfig) (k Keys, err error) {
	recipients, err := ParseRecipients(c.Recipients)
	if err != nil {
		return Keys{}, err
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return Keys{}, fault.Wrap(err, fault.Config, "snapshot.keys", "the data directory cannot be opened")
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err := c.make(c.files(root)); err != nil {
		return Keys{}, err
	}
	naming, err := c.readNaming(root)
	if err != nil {
		return Keys{}, err
	}
	identities, err := c.readIdentities(root)
	if err != nil {
		return Keys{}, err
	}
	var first *age.X25519Identity
	if len(identities) > 0 {
		first = identities[0]
	}
	k = NewKeys(first, naming, recipients...)
	k.identities = identities
	return k, nil
}

func (c KeyConfig) readIdentities(root *os.Root) ([]*age.X25519Identity, error) {
	if c.Source != "" {
		return ParseIdentities(c.Identities, c.Source)
	}
	return identitiesIn(root, identityFile) // none, where recipients are named
}

func (c KeyConfig) readNaming(root *os.Root) (naming [32]byte, err error) {
	text := c.Naming
	if text == "" {
		if text, err = readKey(root, namingFile); err != nil {
			return naming, err
		}
	}
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	switch {
	case (err != nil || len(raw) != len(naming)) && c.Naming != "":
		return naming, fault.New(fault.Config, "snapshot.keys", "--archive-key-file is not 64 hex digits")
	case err != nil || len(raw) != len(naming):
		return naming, badKey(namingFile, "is not 64 hex digits")
	}
	return [32]byte(raw), nil
}

// ParseIdentities reads an age identity file: one X25519 identity or more. source
// is what errors (config) call it; they repeat nothing of the text.
func ParseIdentities(text, source string) ([]*age.X25519Identity, error) {
	const op = "snapshot.keys"
	parsed, err := age.ParseIdentities(strings.NewReader(text))
	if err != nil {
		return nil, fault.New(fault.Config, op, "%s is not an age identity file, as age-keygen writes one", source)
	}
	var list []*age.X25519Identity
	for _, one := range parsed {
		x, ok := one.(*age.X25519Identity)
		if !ok {
			return nil, fault.New(fault.Config, op, "%s holds an identity that is not X25519", source)
		}
		list = append(list, x)
	}
	return list, nil
}

// ParseRecipients reads public keys of age, X25519 only ("age1…"); config names
// one that is not.
func ParseRecipients(texts []string) ([]*age.X25519Recipient, error) {
	if len(texts) > maxRecipients {
		return nil, fault.New(fault.Config, "snapshot.keys", "recipient: %d are more than the %d that are allowed", len(texts), maxRecipients)
	}
	var list []*age.X25519Recipient
	for _, text := range texts {
		r, err := age.ParseX25519Recipient(text)
		if err != nil && strings.HasPrefix(text, "age1") {
			return nil, fault.New(fault.Config, "snapshot.keys", "recipient: %.80q is not a public key of age that is known here (X25519)", text)
		}
		if err != nil { // it may be an identity, by mistake
			return nil, fault.New(fault.Config, "snapshot.keys", "recipient: must be a public key of age (age1…, X25519)")
		}
		list = append(list, r)
	}
	return list, nil
}
