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

	"github.com/stasisd/stasis/snapshot"
)

type snapshotImportCmd struct {
	remoteDaemon
	Format          string `help:"What FILE is." enum:"stasis,playwright,puppeteer,netscape,datadir" default:"stasis" env:"-"`
	User            string `help:"Whose it is to be; otherwise the key's user's." env:"-"`
	Label           string `help:"A label for it." env:"-"`
	Profile         string `help:"Of a datadir: the folder of the profile to take." env:"-"`
	SaveAsDefault   bool   `help:"Make it the user's default environment." env:"-"`
	DefaultConflict string `help:"Whether it becomes that too where another one does meanwhile." enum:"keep,overwrite" default:"keep" env:"-"`
	Identity        string `help:"Open a sealed FILE here, with this age identity file; otherwise the daemon opens it." placeholder:"FILE" env:"-"`
	File            string `arg:"" help:"The file."`
}

// Run is the verb. It prints the snapshot's ID. It is a failure where the snapshot
// was to be the default and is not.
func (c *snapshotImportCmd) Run(ctx context.Context) error {
	file, err := os.Open(c.File)
	if err != nil {
		return exitError{exitUsage, err.Error()}
	}
	defer func() { _ = file.Close() }() // it was only read from
	var body io.Reader = file
	if c.Identity != "" {
		if body, err = c.open(file); err != nil {
			return err
		}
	}
	query := url.Values{"format": {c.Format}, "save_as_default": {strconv.FormatBool(c.SaveAsDefault)}, "default_conflict": {c.DefaultConflict}}
	for name, value := range map[string]string{"user_id": c.User, "label": c.Label, "profile": c.Profile} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var made struct {
		Snapshot remoteSnapshot
		Default  *struct {
			Moved  bool
			Reason string
		}
	}
	if err := c.call(ctx, http.MethodPost, "/v1/snapshots?"+query.Encode(), body, &made); err != nil {
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
		return exitError{exitFailed, "the snapshot is kept, and the default did not move" + why}
	}
	return nil
}

// open decrypts the file while it is sent. One that is cut or damaged breaks the
// upload off, and the daemon keeps nothing of it.
func (c *snapshotImportCmd) open(file *os.File) (io.Reader, error) {
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
		return nil, exitError{exitFailed, c.File + " does not open with --identity: " + err.Error()}
	}
	return plain, nil
}
