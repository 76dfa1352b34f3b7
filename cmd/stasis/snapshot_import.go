package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"filippo.io/age"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/snapshot"
)

type snapshotImportCmd struct {
	remoteDaemon
	progressFlag
	Format          string `help:"Format of FILE." enum:"stasis,playwright,puppeteer,netscape,datadir" default:"stasis" env:"-"`
	User            string `help:"User who gets the snapshot; by default the key's user." env:"-"`
	Label           string `help:"Label of the snapshot." env:"-"`
	Profile         string `help:"With --format=datadir: the folder of the profile to import." env:"-"`
	SaveAsDefault   bool   `help:"Make the snapshot the user's default environment." env:"-"`
	DefaultConflict string `help:"What to do if the default has changed meanwhile: keep that one, or overwrite it." enum:"keep,overwrite" default:"keep" env:"-"`
	Identity        string `help:"Open a sealed FILE on this machine with this age identity file; by default the daemon opens it." placeholder:"FILE" env:"-"`
	File            string `arg:"" help:"The file to import."`
}

// Run prints the snapshot's ID. It fails if the snapshot was to become the default and did
// not.
func (c *snapshotImportCmd) Run(ctx context.Context) error {
	file, err := os.Open(c.File)
	if err != nil {
		return exitError{exitUsage, err.Error()}
	}
	defer func() { _ = file.Close() }() // it was only read
	query := url.Values{"format": {c.Format}, "save_as_default": {strconv.FormatBool(c.SaveAsDefault)}, "default_conflict": {c.DefaultConflict}}
	for name, value := range map[string]string{"user_id": c.User, "label": c.Label, "profile": c.Profile} {
		if value != "" {
			query.Set(name, value)
		}
	}
	counted, bar, err := c.counted("importing", file)
	if err != nil {
		return exitError{exitUsage, err.Error()}
	}
	var body io.Reader = counted
	if c.Identity != "" {
		body, err = c.open(counted)
	}
	var made client.EndResult
	if err == nil {
		err = c.call(ctx, http.MethodPost, "/v1/snapshots?"+query.Encode(), body, &made)
	}
	erase(bar)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, made.Snapshot.ID); err != nil {
		return err
	}
	if d := made.Default; c.SaveAsDefault && (d == nil || !d.Moved) {
		why := ""
		if d != nil {
			why = ": " + d.Reason
		}
		return exitError{exitFailed, "the snapshot was stored, but the default did not move" + why}
	}
	return nil
}

// open decrypts the file while it is sent. If the file is truncated or damaged, the upload
// is aborted and the daemon keeps nothing of it.
func (c *snapshotImportCmd) open(file io.Reader) (io.Reader, error) {
	text, err := readKeyFile("--identity", c.Identity)
	if err != nil {
		return nil, err
	}
	list, err := snapshot.ParseIdentities(text, "--identity")
	if err != nil {
		return nil, err
	}
	identities := make([]age.Identity, len(list))
	for i, x := range list {
		identities[i] = x
	}
	plain, err := age.Decrypt(bufio.NewReader(file), identities...)
	if err != nil {
		return nil, exitError{exitFailed, c.File + ": does not open with --identity: " + err.Error()}
	}
	return plain, nil
}
