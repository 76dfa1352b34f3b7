package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/schollz/progressbar/v3"

	"github.com/stasisd/stasis/snapshot"
)

type snapshotExportCmd struct {
	remoteDaemon
	progressFlag
	Recipient []string `help:"Seal the file only to this age public key; may be repeated. By default the file is sealed to the daemon's recipients, as in the store." placeholder:"age1…" env:"-" xor:"seal"`
	Plain     bool     `help:"Do not seal the file: anyone who has it has every login in it." env:"-" xor:"seal"`
	Out       string   `help:"File to write; by default ID.tar.zst.age in the current folder, or ID.tar.zst with --plain." placeholder:"FILE" env:"-"`
	Force     bool     `help:"Overwrite FILE." env:"-"`
	ID        string   `arg:"" help:"The snapshot's ID."`
}

// Run exports the snapshot and prints the file's name. The file exists only when it is
// complete, and only its owner can read it.
func (c *snapshotExportCmd) Run(ctx context.Context) error {
	query, suffix := url.Values{"sealed": {"true"}}, ".tar.zst.age"
	switch {
	case c.Plain:
		query, suffix = url.Values{"sealed": {"false"}}, ".tar.zst"
	case len(c.Recipient) > 0:
		query = url.Values{"recipient": c.Recipient}
	}
	out := c.Out
	if out == "" {
		out = filepath.Base(c.ID) + suffix
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) && !c.Force {
		return exitError{exitUsage, out + ": already exists; --force overwrites it"}
	}
	ctx, cancel := context.WithTimeout(ctx, remoteDeadline)
	defer cancel()
	res, err := c.do(ctx, http.MethodGet, "/v1/snapshots/"+url.PathEscape(c.ID)+"/archive?"+query.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	bar := c.bytes("exporting", res.ContentLength)
	body := progressbar.NewReader(res.Body, bar)
	err = writeAtomic(out, c.Force, func(file io.Writer) error {
		if c.Plain {
			_, err := io.Copy(file, &body)
			return err
		}
		// This machine may be unable to open the archive; the hash can be checked all the
		// same.
		sum, err := snapshot.PayloadSHA256(io.TeeReader(&body, file))
		if err == nil && sum != res.Header.Get("X-Stasis-Payload-SHA256") {
			err = errors.New("the file does not have the hash that the daemon sent")
		}
		return err
	})
	erase(bar)
	if err != nil {
		return interrupted(ctx, exitError{exitFailed, "nothing was written: " + err.Error()}, "interrupted: nothing was written")
	}
	_, err = fmt.Fprintln(os.Stdout, out)
	return err
}

// writeAtomic writes a file of mode 0600, which gets its name only when it is complete and
// durable. It overwrites an existing file only with force.
func writeAtomic(name string, force bool, write func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".export-*")
	if err != nil {
		return err
	}
	defer func() {
		if gone := os.Remove(file.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	if force {
		return os.Rename(file.Name(), name)
	}
	return os.Link(file.Name(), name)
}
