package snapshot

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
)

// The files of [LoadOrCreateKeys].
const (
	identityFile = "identity"
	namingFile   = "archive-key"
	newSuffix    = ".new"
)

// Keys seal, open and name archives. They are never printed: formatting a
// Keys shows its recipients only.
type Keys struct {
	recipients []*age.X25519Recipient
	identities []*age.X25519Identity
	naming     []byte // 32 bytes
}

// NewKeys returns keys that seal to one identity and open with it. naming is
// the secret that archive IDs are derived from.
func NewKeys(identity *age.X25519Identity, naming [32]byte) Keys {
	return Keys{
		recipients: []*age.X25519Recipient{identity.Recipient()},
		identities: []*age.X25519Identity{identity},
		naming:     naming[:],
	}
}

// WithoutIdentities returns the keys of a node that may seal and not open.
func (k Keys) WithoutIdentities() Keys {
	k.identities = nil
	return k
}

// Recipients are the public keys that archives are sealed to ("age1…").
func (k Keys) Recipients() []string {
	var list []string
	for _, r := range k.recipients {
		list = append(list, r.String())
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

// LoadOrCreateKeys reads dir/identity (an age identity file, X25519) and
// dir/archive-key (32 bytes in hex), both of which only their owner may read;
// on the first start it makes them. The caller holds the data directory for
// itself. One file of the two that is missing later is identity_missing:
// making it anew would leave every snapshot unreadable. The error config says
// which file is wrong.
//
// The identity is written under a temporary name first, then the naming
// secret, and then the identity gets its name, so that every point at which a
// first start can die is told from a lost file, and carried on from.
func LoadOrCreateKeys(dir string) (Keys, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Keys{}, fault.Wrap(err, fault.Config, "snapshot.keys", "the data directory cannot be opened")
	}
	k, err := loadKeys(root)
	return k, errors.Join(err, root.Close())
}

func loadKeys(root *os.Root) (Keys, error) {
	if err := createKeys(root); err != nil {
		return Keys{}, err
	}
	id, err := readKey(root, identityFile)
	if err != nil {
		return Keys{}, err
	}
	parsed, err := age.ParseIdentities(strings.NewReader(id))
	if err != nil {
		return Keys{}, badKey(identityFile, "is not an age identity file")
	}
	k := Keys{}
	for _, one := range parsed {
		x, ok := one.(*age.X25519Identity)
		if !ok {
			return Keys{}, badKey(identityFile, "holds an identity that is not X25519")
		}
		k.identities = append(k.identities, x)
		k.recipients = append(k.recipients, x.Recipient())
	}
	text, err := readKey(root, namingFile)
	if err != nil {
		return Keys{}, err
	}
	if k.naming, err = hex.DecodeString(strings.TrimSpace(text)); err != nil || len(k.naming) != 32 {
		return Keys{}, badKey(namingFile, "is not 64 hex digits")
	}
	return k, nil
}

func badKey(name, what string) error {
	return fault.New(fault.Config, "snapshot.keys", "the file %q in the data directory %s", name, what)
}

func createKeys(root *os.Root) error {
	haveIdentity, haveNaming := exists(root, identityFile), exists(root, namingFile)
	switch {
	case haveIdentity && haveNaming:
		return nil
	case haveIdentity:
		return lostKey(namingFile, identityFile)
	case haveNaming && !exists(root, identityFile+newSuffix):
		return lostKey(identityFile, namingFile)
	}
	if !haveNaming {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			return fault.Wrap(err, fault.Internal, "snapshot.keys", "")
		}
		secret := make([]byte, 32)
		rand.Read(secret) // never fails
		text := fmt.Sprintf("# public key: %s\n%s\n", id.Recipient(), id)
		err = errors.Join(
			writeKey(root, identityFile+newSuffix, text),
			writeKey(root, namingFile+newSuffix, hex.EncodeToString(secret)+"\n"))
		if err == nil {
			err = renameKey(root, namingFile)
		}
		if err != nil {
			return fault.Wrap(err, fault.Config, "snapshot.keys", "the data directory cannot be written")
		}
	}
	return fault.Wrap(renameKey(root, identityFile), fault.Config, "snapshot.keys", "the data directory cannot be written")
}

func lostKey(lost, there string) error {
	return fault.New(fault.IdentityMissing, "snapshot.keys",
		"the data directory has %q but not %q, without which its snapshots cannot be read: put it back from a backup, or remove both to start anew", there, lost)
}

func exists(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

func readKey(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return "", fault.Wrap(err, fault.Config, "snapshot.keys", "")
	case !info.Mode().IsRegular():
		return "", badKey(name, "is not a regular file")
	case info.Mode().Perm()&0o077 != 0:
		return "", badKey(name, "can be read by others: set its mode to 0600")
	}
	f, err := root.Open(name)
	if err != nil {
		return "", fault.Wrap(err, fault.Config, "snapshot.keys", "")
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return string(text), fault.Wrap(errors.Join(err, f.Close()), fault.Config, "snapshot.keys", "")
}

func writeKey(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// renameKey gives a key file that was written its name, durably.
func renameKey(root *os.Root, name string) error {
	if err := root.Rename(name+newSuffix, name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Clean(root.Name()))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
