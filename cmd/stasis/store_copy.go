//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

type storeCopyCmd struct {
	s3Flags
	printed
	Quiet bool   `help:"Print only what goes wrong." env:"-"`
	From  string `arg:"" help:"The store to read, in the form of serve's --store; a daemon may run on it."`
	To    string `arg:"" help:"The store to write, in the same form; it is created if it does not exist. No daemon may run on it."`
}

// copied is the result of a copy for scripts.
type copied struct {
	Archives      int   `json:"archives"`
	Bytes         int64 `json:"bytes"` // of the archives that were written
	Documents     int   `json:"documents"`
	SameArchives  int   `json:"same_archives"` // were already there
	SameDocuments int   `json:"same_documents"`
	Refused       int   `json:"refused"`
}

// keysNotCopied says what a copy does not include.
const keysNotCopied = "keys and catalogue are not copied: restoring from the copy needs the identity, the archive key and the catalogue, which lists the snapshots; " +
	"without --identity-file, --archive-key-file and --database they are DIR/identity, DIR/archive-key and DIR/stasis.db"

// Run copies the store and prints what was copied.
func (c *storeCopyCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: run it again to continue") }()
	from, err := c.open(ctx, c.From, true, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	spool, err := os.MkdirTemp("", "stasis-copy-")
	if err != nil {
		return fault.Wrap(err, fault.Config, "store.copy", "TMPDIR: cannot create a folder for temporary files there")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(spool)) }()
	to, err := c.open(ctx, c.To, false, spool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	bar, err := progressFlag{c.Quiet}.archives(ctx, from)
	if err != nil {
		return err
	}
	out, err := snapshot.Copy(ctx, from, to, snapshot.CopyOptions{Progress: showCopy(bar), Found: func(f snapshot.Finding) error {
		_ = bar.Clear()
		_, err := fmt.Fprintf(os.Stderr, "not copied: %s: %s: %s\n", f.Kind, printable(f.Key), f.What)
		return err
	}})
	erase(bar)
	if err != nil {
		return err
	}
	if out == (snapshot.CopyResult{}) {
		return fault.New(fault.Config, "store.copy", "FROM: the store is empty; name the folder or bucket of a store")
	}
	if !c.Quiet {
		err := c.print(copied{out.Archives, out.Bytes, out.Documents, out.SameArchives, out.SameDocuments, out.Refused}, func() error {
			_, err := fmt.Printf("copied %d archives (%d bytes) and %d documents; %d archives and %d documents were already there\n%s\n",
				out.Archives, out.Bytes, out.Documents, out.SameArchives, out.SameDocuments, keysNotCopied)
			return err
		})
		if err != nil {
			return err
		}
	}
	if out.Refused > 0 {
		return exitError{exitDamaged, fmt.Sprintf("%d objects were not copied", out.Refused)}
	}
	return nil
}

// open opens one of the two stores. FROM must exist.
func (c *storeCopyCmd) open(ctx context.Context, raw string, read bool, spool string) (snapshot.Store, error) {
	const op = "store.copy"
	at, err := parseStore(raw)
	if err != nil {
		return nil, err
	}
	if at.memory {
		return nil, fault.New(fault.Config, op, "FROM, TO: must not be mem://, which exists only in its daemon")
	}
	if other, err := parseStore(c.From); !read && err == nil && other.String() == at.String() {
		return nil, fault.New(fault.Config, op, "FROM, TO: must not be the same store")
	}
	if _, err := os.Stat(at.dir); read && at.dir != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Config, op, "FROM: the folder %s does not exist", at.dir)
	}
	return at.open(ctx, c.s3Flags, spool, read)
}
