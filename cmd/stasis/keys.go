//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// commandDeadline limits how long an --identity-command may run: it may query a vault over
// the network.
const commandDeadline = 30 * time.Second

// keyFlags say where the keys of the snapshots come from.
type keyFlags struct {
	IdentityFile    string     `help:"age identity file that opens snapshots, instead of DIR/identity. STASIS_IDENTITY may contain its text instead." placeholder:"FILE"`
	IdentityCommand secretText `help:"Command that prints an age identity file; sh runs it." placeholder:"CMD"`
	Recipient       []string   `help:"age public key to seal snapshots to, in addition to the first identity; may be repeated. With no identity at all the daemon can save but not restore." placeholder:"age1…"`
	ArchiveKeyFile  string     `help:"File with the secret from which archives get their names, instead of DIR/archive-key. The daemon of a store and all commands on it need the same one." placeholder:"FILE"`

	prepended string // identities before those of the source: the new one of a rotation
}

// config returns where the keys come from. It is called once: it removes STASIS_IDENTITY
// from the environment, so that no process that is started later gets it.
func (f keyFlags) config(ctx context.Context, dir string) (c snapshot.KeyConfig, err error) {
	c = snapshot.KeyConfig{Dir: dir, Recipients: f.Recipient}
	if f.ArchiveKeyFile != "" {
		if c.NamingSecret, err = readKeyFile("--archive-key-file", f.ArchiveKeyFile); err != nil {
			return c, err
		}
		if strings.TrimSpace(c.NamingSecret) == "" {
			return c, fault.New(fault.Config, "keys", "--archive-key-file: %s is empty", f.ArchiveKeyFile)
		}
	}
	if c.Source, err = f.source(); err != nil || c.Source == "" {
		return c, err
	}
	switch c.Source {
	case "--identity-file":
		c.Identities, err = readKeyFile(c.Source, f.IdentityFile)
	case "--identity-command":
		c.Identities, err = runIdentityCommand(ctx, string(f.IdentityCommand))
	default:
		c.Identities = os.Getenv(identityVariable)
		err = os.Unsetenv(identityVariable)
	}
	c.Identities = f.prepended + c.Identities
	return c, err
}

// source returns the name of the flag or variable that gives the identities; "" means
// DIR/identity.
func (f keyFlags) source() (string, error) {
	var given []string
	for name, value := range map[string]string{"--identity-file": f.IdentityFile, "--identity-command": string(f.IdentityCommand), identityVariable: os.Getenv(identityVariable)} {
		if value != "" {
			given = append(given, name)
		}
	}
	switch len(given) {
	case 0:
		return "", nil
	case 1:
		return given[0], nil
	}
	return "", fault.New(fault.Config, "keys", "give only one of --identity-file, --identity-command and %s", identityVariable)
}

// runIdentityCommand runs a command with sh and returns its output. Its standard error is
// this process's, and its input is empty. Processes that it starts end with it.
func runIdentityCommand(ctx context.Context, command string) (string, error) {
	const op = "keys.command"
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	printed := &boundedBuffer{left: snapshot.MaxKeyFile}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Stdout, cmd.Stderr = printed, os.Stderr
	cmd.Env = withoutSecrets(os.Environ())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case printed.left < 0:
		return "", fault.New(fault.Config, op, "--identity-command: printed more than %d bytes", snapshot.MaxKeyFile)
	case ctx.Err() != nil:
		return "", fault.New(fault.Config, op, "--identity-command: did not end within %s", commandDeadline)
	case err != nil:
		return "", fault.Wrap(err, fault.Config, op, "--identity-command: failed")
	case len(bytes.TrimSpace(printed.text.Bytes())) == 0:
		return "", fault.New(fault.Config, op, "--identity-command: printed nothing")
	}
	return printed.text.String(), nil
}

// boundedBuffer fails when more is written than is left. It does not embed the
// bytes.Buffer, because io.Copy would then fill the buffer beyond the limit.
type boundedBuffer struct {
	text bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("the output is too large")
	}
	return b.text.Write(p)
}
