package snapshot

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
)

// KeyConfig says where keys come from. The zero value of each field but Dir is the
// daemon's default.
type KeyConfig struct {
	// Dir is the data directory. Its files identity (an age identity file) and archive-key
	// (the naming secret, 32 bytes in hex) must be readable by their owner only. Unless
	// ReadOnly is set, the caller holds the directory's lock.
	Dir string
	// Identities is the text of an age identity file from elsewhere; Dir/identity is then
	// not read. Source names its origin, for messages.
	Identities, Source string
	// Recipients ("age1…") can open what is sealed, in addition to the first identity. If
	// recipients are given and there is no identity, LoadKeys creates none. Sealed data
	// then cannot be opened here.
	Recipients []string
	// NamingSecret is the text of the naming secret, if it does not come from
	// Dir/archive-key.
	NamingSecret string
	// InUse reports whether the store already holds archives. If it does, a missing key was
	// lost. It is called only before a key would be created.
	InUse func() (bool, error)
	// ReadOnly makes LoadKeys create nothing.
	ReadOnly bool
}

// maxRecipients limits a file's recipients, because an age header is read as a whole.
const maxRecipients = 64

// LoadKeys reads the keys. On a first start it creates those that are kept in the data
// directory. All identities of the source can open data. New data is sealed to the first
// of them and to the recipients.
//
// A key file that existed once and is missing is identity_missing: a new key could not
// read the existing snapshots. An invalid key is a config error that names it.
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
	return identitiesIn(root, identityFile) // none, if recipients are given
}

func (c KeyConfig) readNaming(root *os.Root) (naming [32]byte, err error) {
	text := c.NamingSecret
	if text == "" {
		if text, err = readKey(root, namingFile); err != nil {
			return naming, err
		}
	}
	raw, err := hex.DecodeString(strings.TrimSpace(text))
	switch {
	case (err != nil || len(raw) != len(naming)) && c.NamingSecret != "":
		return naming, fault.New(fault.Config, "snapshot.keys", "--archive-key-file: must be 64 hex digits")
	case err != nil || len(raw) != len(naming):
		return naming, badKey(namingFile, "is not 64 hex digits")
	}
	return [32]byte(raw), nil
}

// ParseIdentities reads an age identity file with one or more X25519 identities. Errors
// (config) call the file source and repeat nothing of its text.
func ParseIdentities(text, source string) ([]*age.X25519Identity, error) {
	const op = "snapshot.keys"
	parsed, err := age.ParseIdentities(strings.NewReader(text))
	if err != nil {
		return nil, fault.New(fault.Config, op, "%s: must be an age identity file, as age-keygen writes it", source)
	}
	var list []*age.X25519Identity
	for _, one := range parsed {
		x, ok := one.(*age.X25519Identity)
		if !ok {
			return nil, fault.New(fault.Config, op, "%s: all identities must be X25519", source)
		}
		list = append(list, x)
	}
	return list, nil
}

// ParseRecipients reads public age keys, X25519 only ("age1…"). The error (config) names
// an invalid key.
func ParseRecipients(texts []string) ([]*age.X25519Recipient, error) {
	if len(texts) > maxRecipients {
		return nil, fault.New(fault.Config, "snapshot.keys", "recipient: %d are given; at most %d are allowed", len(texts), maxRecipients)
	}
	var list []*age.X25519Recipient
	for _, text := range texts {
		r, err := age.ParseX25519Recipient(text)
		if err != nil && strings.HasPrefix(text, "age1") {
			return nil, fault.New(fault.Config, "snapshot.keys", "recipient: %.80q must be a public age key (age1…, X25519)", text)
		}
		if err != nil { // the text is not repeated: it may be an identity
			return nil, fault.New(fault.Config, "snapshot.keys", "recipient: must be a public age key (age1…, X25519)")
		}
		list = append(list, r)
	}
	return list, nil
}
