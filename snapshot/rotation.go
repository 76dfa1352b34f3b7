package snapshot

import (
	"errors"
	"os"
	"slices"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
)

// RetiredFile is the file in the data directory that keeps the identities that rotations
// have replaced.
const RetiredFile = identityFile + ".old"

// BeginRotation puts a new identity before those of dir/identity and keeps the old ones
// in dir/identity.old. to is the new identity; nil creates one. From then on data is
// sealed to the new identity, and all of them open data. If an earlier rotation was not
// ended, BeginRotation continues it (resumed); then to must be its identity. The caller
// holds the data directory's lock.
func BeginRotation(dir string, to *age.X25519Identity) (resumed bool, err error) {
	const op = "snapshot.rotate"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, fault.Wrap(err, fault.Config, op, "the data directory cannot be opened")
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	have, err := identitiesIn(root, identityFile)
	if err != nil {
		return false, err
	}
	if len(have) == 0 {
		return false, fault.New(fault.IdentityMissing, op, "the data directory has no identity to rotate")
	}
	retired, err := identitiesIn(root, RetiredFile)
	if err != nil {
		return false, err
	}
	begun := len(have) > 1 && !among(retired, have[0]) && !slices.ContainsFunc(have[1:], func(x *age.X25519Identity) bool { return !among(retired, x) })
	switch {
	case begun && (to == nil || to.String() == have[0].String()):
		return true, nil
	case begun:
		return false, fault.New(fault.Config, op, "an earlier rotation to %s has not finished; to finish it, run the rotation without --to, or with the file of that identity", have[0].Recipient())
	case to != nil && (among(have, to) || among(retired, to)):
		return false, fault.New(fault.Config, op, "%s is or was an identity of this data directory; give another identity", to.Recipient())
	case to == nil:
		if to, err = age.GenerateX25519Identity(); err != nil {
			return false, fault.Wrap(err, fault.Internal, op, "")
		}
	}
	for _, x := range slices.Backward(have) {
		if !among(retired, x) {
			retired = append([]*age.X25519Identity{x}, retired...)
		}
	}
	// The retired identities are written first, so that each identity is always in a file.
	if err = replaceKey(root, RetiredFile, identityText(retired...)); err == nil {
		err = replaceKey(root, identityFile, identityText(append([]*age.X25519Identity{to}, have...)...))
	}
	return false, fault.Wrap(err, fault.Config, op, "the data directory cannot be written")
}

// EndRotation keeps only the new identity in dir/identity.
func EndRotation(dir string) (err error) {
	const op = "snapshot.rotate"
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fault.Wrap(err, fault.Config, op, "the data directory cannot be opened")
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	have, err := identitiesIn(root, identityFile)
	if err != nil {
		return err
	}
	if len(have) == 0 {
		return fault.New(fault.IdentityMissing, op, "the data directory has no identity")
	}
	return fault.Wrap(replaceKey(root, identityFile, identityText(have[0])), fault.Config, op, "the data directory cannot be written")
}

// identitiesIn reads a file of the data directory; it returns none if the file is
// missing.
func identitiesIn(root *os.Root, name string) ([]*age.X25519Identity, error) {
	if !exists(root, name) {
		return nil, nil
	}
	text, err := readKey(root, name)
	if err != nil {
		return nil, err
	}
	return ParseIdentities(text, "the file "+name+" in the data directory")
}

func among(list []*age.X25519Identity, x *age.X25519Identity) bool {
	return slices.ContainsFunc(list, func(one *age.X25519Identity) bool { return one.String() == x.String() })
}
