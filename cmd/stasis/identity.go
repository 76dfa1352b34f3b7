//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
)

// identityCmd holds the verbs for the keys that seal snapshots. They need no daemon.
type identityCmd struct {
	Show   identityShowCmd   `cmd:"" help:"Print the public keys that snapshots are sealed to, and those whose snapshots can be opened with the identities here."`
	Rotate identityRotateCmd `cmd:"" help:"Make a new identity, seal all stored data to it, and retire the old one. No daemon may run on the data directory."`
}

type identityShowCmd struct{ storageFlags }

// Run prints a line for each public key and what it does, those that snapshots are sealed
// to first. It creates nothing, and a daemon may run.
func (c *identityShowCmd) Run(ctx context.Context) error {
	dir, err := c.dataDir()
	if err != nil {
		return err
	}
	from, err := c.config(ctx, dir)
	if err != nil {
		return err
	}
	from.ReadOnly = true
	keys, err := snapshot.LoadKeys(from)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, key := range keys.Recipients() {
		role := "seals"
		if slices.Contains(keys.IdentityRecipients(), key) {
			role = "seals, opens"
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\n", key, role); err != nil {
			return err
		}
	}
	for _, key := range keys.IdentityRecipients() {
		if slices.Contains(keys.Recipients(), key) {
			continue
		}
		if _, err := fmt.Fprintf(table, "%s\topens\n", key); err != nil {
			return err
		}
	}
	return table.Flush()
}

type identityRotateCmd struct {
	storageFlags
	To   string   `help:"File with the new identity; by default a new one is made. Required if the identity does not come from DIR/identity." placeholder:"FILE" env:"-"`
	Drop []string `help:"A recipient that stored data is no longer sealed to. May be repeated." placeholder:"age1…" env:"-"`
}

// Run rotates the identity. It may be killed at any point: everything can still be opened,
// and the next run continues where this one stopped.
func (c *identityRotateCmd) Run(ctx context.Context) (err error) {
	if _, err := snapshot.ParseRecipients(c.Drop); err != nil {
		return err
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	to, err := c.newIdentity(source)
	if err != nil {
		return err
	}
	dir, err := c.dataDir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "archive-key")); errors.Is(err, fs.ErrNotExist) && c.ArchiveKeyFile == "" {
		return fault.New(fault.Config, "identity.rotate", "--data-dir: no daemon has run on %s; give the daemon's --data-dir", dir)
	}
	s, err := c.acquireOffline()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	database, err := c.database(s)
	if err != nil {
		return err
	}
	if err := s.checkSameStore(ctx); err != nil {
		return err
	}
	if source == "" {
		resumed, err := snapshot.BeginRotation(dir, to)
		if err != nil {
			return err
		}
		if resumed {
			fmt.Println("continuing an earlier rotation that did not finish")
		}
	} else {
		s.flags.prepended = to.String() + "\n"
	}
	if err := s.open(ctx, database); err != nil {
		return err
	}
	left, opened, err := c.rewrap(ctx, s)
	if err != nil {
		return fault.Wrap(err, fault.CodeOf(err), "identity.rotate", "the rotation did not finish; nothing is lost; run the same command again: "+fault.MessageOf(err))
	}
	if len(left) > 0 && opened == 0 {
		return exitError{exitFailed, fmt.Sprintf("none of %d objects could be opened, so the old identity is not retired; "+
			"keep every identity file; add the identity that opens the objects, and run the rotation again", len(left))}
	}
	if source == "" {
		if err := snapshot.EndRotation(dir); err != nil {
			return err
		}
		fmt.Printf("everything is now sealed to %s; the old identity is kept in %s, for older backups\n",
			s.keys.IdentityRecipients()[0], filepath.Join(dir, snapshot.RetiredFile))
	} else {
		fmt.Printf("everything is now sealed to %s; before the daemon starts, change %s so that it gives the identity in %s; keep the old identity for older backups\n",
			s.keys.IdentityRecipients()[0], source, c.To)
	}
	if len(left) > 0 {
		return exitError{exitFailed, fmt.Sprintf("%d objects could not be opened and are unchanged; they are listed above", len(left))}
	}
	return nil
}

// newIdentity reads --to; nil means that a new identity is to be made.
func (c *identityRotateCmd) newIdentity(source string) (*age.X25519Identity, error) {
	if c.To == "" {
		if source != "" {
			return nil, fault.New(fault.Config, "identity.rotate", "the identity comes from %s: give --to FILE with a new identity from age-keygen", source)
		}
		return nil, nil
	}
	text, err := readKeyFile("--to", c.To)
	if err != nil {
		return nil, err
	}
	list, err := snapshot.ParseIdentities(text, "--to")
	if err == nil && len(list) != 1 {
		err = fault.New(fault.Config, "identity.rotate", "--to: must contain one identity, not %d", len(list))
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// rewrap reseals store and catalogue to the first identity and prints its progress. It
// returns what could not be opened, and how many objects were opened.
func (c *identityRotateCmd) rewrap(ctx context.Context, s *storage) (left []snapshot.SkippedObject, opened int, err error) {
	retire := append(slices.Clone(s.keys.IdentityRecipients()[1:]), c.Drop...)
	printed := time.Now()
	out, err := s.vault.Rewrap(ctx, snapshot.RewrapOptions{Retire: retire, Progress: func(done, total int) {
		if time.Since(printed) > time.Second {
			printed = time.Now()
			fmt.Printf("%d of %d archives\n", done, total)
		}
	}})
	if err != nil {
		return nil, 0, err
	}
	kept, err := library.RewrapCatalogue(ctx, s.catalogue.Sessions, s.catalogue.Runs, s.catalogue.Receivers, s.vault, retire)
	if err != nil {
		return nil, 0, err
	}
	left = append(out.Skipped, kept.Skipped...)
	for _, one := range left {
		fmt.Fprintf(os.Stderr, "%s is unchanged: %s\n", one.Key, fault.MessageOf(one.Err))
	}
	fmt.Printf("%d archives, %d documents, %d records of sessions, %d events and %d webhook secrets were resealed\n", out.Archives, out.Documents, kept.Sessions, kept.Events, kept.Secrets)
	return left, out.Opened + kept.Opened, nil
}
