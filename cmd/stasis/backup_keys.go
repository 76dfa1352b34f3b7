//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stasisd/stasis/backup"
	"github.com/stasisd/stasis/fault"
)

// noKeys is what the manifest of a backup without --keys lists as missing.
const noKeys = "the keys (identity, archive-key): without them no snapshot can be restored"

// snapshotKeys returns the names of the keys without which no snapshot can be restored.
func snapshotKeys() []string { return []string{"identity", "archive-key"} }

// isKey reports whether an entry of a manifest's list of what is missing is about keys.
func isKey(missing string) bool {
	return missing == noKeys || slices.ContainsFunc(snapshotKeys(), func(name string) bool { return strings.HasPrefix(missing, "the "+name) })
}

// copyKeys copies the keys from the data directory if --keys is given, and records in the
// manifest which needed keys the backup lacks.
func (g *gatherer) copyKeys(m *backup.Manifest) error {
	if !g.cmd.Keys {
		m.Missing = append(m.Missing, noKeys)
		return nil
	}
	to := filepath.Join(g.to, backup.Keys)
	if err := os.Mkdir(to, 0o700); err != nil {
		return fault.Wrap(err, fault.StoreFailed, "backup.create", "")
	}
	copied := map[string]bool{}
	for _, name := range backup.KeyFiles() {
		err := copySecret(filepath.Join(g.dir, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(err, fault.StoreFailed, "backup.create", name+" cannot be copied")
		}
		copied[name] = err == nil
	}
	m.Keys = true
	for _, name := range snapshotKeys() {
		switch from := g.cmd.keyFlag(name); {
		case from != "":
			m.Missing = append(m.Missing, "the "+name+", which comes from "+from+": back it up yourself")
		case copied[name]:
			continue
		case name == "identity" && len(g.cmd.Recipient) > 0:
			m.Missing = append(m.Missing, "the identity that belongs to --recipient")
		default:
			m.Missing = append(m.Missing, "the "+name+": it is not in "+g.dir)
			g.lostKeys = append(g.lostKeys, name)
		}
		m.Keys = false
	}
	return nil
}

// keyFlag returns the flag or variable that gives a key of the snapshots; "" means the file
// in the data directory.
func (f keyFlags) keyFlag(name string) string {
	if name != "archive-key" {
		source, _ := f.source() // if the source is ambiguous, the start of the daemon reports it
		return source
	}
	if f.ArchiveKeyFile != "" {
		return "--archive-key-file"
	}
	return ""
}

// copySecret copies a file. An absent one is fs.ErrNotExist.
func copySecret(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// printAbsentKeys prints which keys a restored data directory lacks, and what to do.
func printAbsentKeys(m backup.Manifest, dir string) {
	absent := slices.DeleteFunc(snapshotKeys(), func(name string) bool { return slices.Contains(m.KeyFiles(), name) })
	if len(absent) == 0 {
		return
	}
	fmt.Printf("before a daemon starts, put these keys into %s, or give the daemon their flags: %s\n", dir, strings.Join(absent, ", "))
	fmt.Println("or restore again into an empty directory, and name a backup that has the keys: --keys-from BACKUP")
	fmt.Println("a daemon without them does not start if the store has archives, and makes new keys if it has none")
}
