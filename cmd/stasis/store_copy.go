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
	Quiet bool   `help:"Print what goes wrong, and nothing else." env:"-"`
	From  string `arg:"" help:"The store to read, as serve's --store names it; a daemon may run on it."`
	To    string `arg:"" help:"The store to write, likewise; it is made where it is not there. No daemon may run on it."`
}

// keysStay is what a copy does not bring along.
const keysStay = "keys are not copied: whoever is to read the copy needs DIR/identity and DIR/archive-key, and the catalogue DIR/stasis.db names the snapshots"

// Run is the verb.
func (c *storeCopyCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: run it again to carry on") }()
	from, err := c.open(ctx, c.From, true, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	spool, err := os.MkdirTemp("", "stasis-copy-")
	if err != nil {
		return fault.Wrap(err, fault.Config, "store.copy", "there is no place for temporary files; TMPDIR says where it is")
	}
	defer func() { err = errors.Join(err, os.RemoveAll(spool)) }()
	to, err := c.open(ctx, c.To, false, spool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	progress, err := newCopyProgress(ctx, from, c.Quiet)
	if err != nil {
		return err
	}
	out, err := snapshot.Copy(ctx, from, to, snapshot.CopyOptions{Found: progress.refused, Progress: progress.show})
	if err := errors.Join(err, progress.done()); err != nil {
		return err
	}
	if out == (snapshot.Copied{}) {
		return fault.New(fault.Config, "store.copy", "FROM holds nothing: is it a store?")
	}
	if !c.Quiet {
		_, err := fmt.Printf("copied %d archives (%d bytes) and %d documents; %d archives and %d documents were there already\n%s\n",
			out.Archives, out.Bytes, out.Documents, out.SameArchives, out.SameDocuments, keysStay)
		if err != nil {
			return err
		}
	}
	if out.Refused > 0 {
		return exitError{exitDamaged, fmt.Sprintf("%d objects were not copied", out.Refused)}
	}
	return nil
}

// open opens one of both. FROM must be there.
func (c *storeCopyCmd) open(ctx context.Context, raw string, read bool, spool string) (snapshot.Store, error) {
	const op = "store.copy"
	at, err := parseStore(raw)
	if err != nil {
		return nil, err
	}
	if at.memory {
		return nil, fault.New(fault.Config, op, "mem:// is gone with its process: it can be neither copied nor copied to")
	}
	if other, err := parseStore(c.From); !read && err == nil && other.String() == at.String() {
		return nil, fault.New(fault.Config, op, "FROM and TO are the same store")
	}
	if _, err := os.Stat(at.dir); read && at.dir != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Config, op, "FROM: there is no %s", at.dir)
	}
	return at.open(ctx, c.s3Flags, spool, read)
}
