package snapshot

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
)

// The key files of a data directory. A file under construction has the suffix newSuffix
// until it is complete.
const (
	identityFile = "identity"
	namingFile   = "archive-key"
	newSuffix    = ".new"
)

// MaxKeyFile limits a key file, in bytes.
const MaxKeyFile = 64 << 10

// keyFiles says which key files exist, and which are needed.
type keyFiles struct {
	root                   *os.Root
	wantIdentity           bool // the identity comes from DIR/identity
	wantNaming             bool // the naming secret comes from DIR/archive-key
	haveIdentity, haveName bool
	// interrupted: a first start wrote the naming secret and died before it renamed the
	// identity.
	interrupted bool
}

func (c KeyConfig) files(root *os.Root) keyFiles {
	f := keyFiles{root: root, wantIdentity: c.Source == "", wantNaming: c.NamingSecret == "",
		haveIdentity: exists(root, identityFile), haveName: exists(root, namingFile)}
	f.interrupted = f.wantNaming && f.haveName && exists(root, identityFile+newSuffix)
	return f
}

// make creates the needed key files on a first start. It does not replace a file that
// existed before, because nothing sealed or named with the old key could be read. That is
// identity_missing.
func (c KeyConfig) make(f keyFiles) error {
	makeIdentity := f.wantIdentity && !f.haveIdentity && len(c.Recipients) == 0
	makeName := f.wantNaming && !f.haveName
	switch {
	case !makeIdentity && !makeName:
		return nil
	case makeName && f.wantIdentity && f.haveIdentity:
		return lostKey(namingFile, fmt.Sprintf("the data directory has %q", identityFile))
	case makeIdentity && f.wantNaming && f.haveName && !f.interrupted:
		return lostKey(identityFile, fmt.Sprintf("the data directory has %q", namingFile))
	}
	if c.InUse != nil {
		used, err := c.InUse()
		if err != nil {
			return err
		}
		if used && makeName {
			return lostKey(namingFile, "the store holds snapshots")
		}
		if used {
			return lostKey(identityFile, "the store holds snapshots")
		}
	}
	if c.ReadOnly {
		return fault.New(fault.Config, "snapshot.keys", "the data directory has no keys; put identity and archive-key back from a backup, or give --identity-file and --archive-key-file; "+
			"if it is new, start the daemon once to create them")
	}
	return fault.Wrap(f.createFirst(makeIdentity, makeName), fault.Config, "snapshot.keys", "the data directory cannot be written")
}

// createFirst writes the keys of a first start. It writes the identity under a temporary
// name, then the naming secret, and then renames the identity. So at every point a first
// start that died differs from a lost file, and the next start can continue it.
func (f keyFiles) createFirst(identity, name bool) error {
	if identity && !f.interrupted {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			return err
		}
		if err := writeKey(f.root, identityFile+newSuffix, identityText(id)); err != nil {
			return err
		}
	}
	if name {
		secret := make([]byte, 32)
		rand.Read(secret) // never fails
		if err := replaceKey(f.root, namingFile, hex.EncodeToString(secret)+"\n"); err != nil {
			return err
		}
	}
	if identity {
		return renameKey(f.root, identityFile)
	}
	return nil
}

// identityText returns the text of an age identity file.
func identityText(identities ...*age.X25519Identity) string {
	text := ""
	for _, id := range identities {
		text += fmt.Sprintf("# public key: %s\n%s\n", id.Recipient(), id)
	}
	return text
}

func lostKey(lost, why string) error {
	return fault.New(fault.IdentityMissing, "snapshot.keys",
		"%s, but %q is missing from the data directory; snapshots cannot be read without this file: restore it from a backup, "+
			"give it with --%s-file, or start with an empty data directory and store", why, lost, lost)
}

func badKey(name, what string) error {
	return fault.New(fault.Config, "snapshot.keys", "the file %q in the data directory %s", name, what)
}

func exists(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

func readKey(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return "", fault.Wrap(err, fault.Config, "snapshot.keys", "a key cannot be read")
	case !info.Mode().IsRegular():
		return "", badKey(name, "is not a regular file")
	case info.Mode().Perm()&0o077 != 0:
		return "", badKey(name, "can be read by others: set its mode to 0600")
	}
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return "", fault.Wrap(err, fault.Config, "snapshot.keys", notOwned(filepath.Join(root.Name(), name), info))
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Config, "snapshot.keys", "a key cannot be read")
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxKeyFile))
	return string(text), fault.Wrap(errors.Join(err, f.Close()), fault.Config, "snapshot.keys", "a key cannot be read")
}

// notOwned says who owns a key file that this process may not read, and what to do.
func notOwned(path string, info fs.FileInfo) string {
	owner := "another user"
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		owner = userName(int(stat.Uid))
	}
	me := userName(os.Geteuid())
	return fmt.Sprintf("the key file %s belongs to %s, and this process runs as %s; run as root: chown %s: %s", path, owner, me, me, path)
}

// userName returns the name of a user, or the number if there is no name.
func userName(id int) string {
	number := strconv.Itoa(id)
	if known, err := user.LookupId(number); err == nil {
		return known.Username
	}
	return number
}

// replaceKey writes a key file completely or not at all, durably.
func replaceKey(root *os.Root, name, text string) error {
	if err := writeKey(root, name+newSuffix, text); err != nil {
		return err
	}
	return renameKey(root, name)
}

func writeKey(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// renameKey renames a complete new key file to its final name, durably.
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
