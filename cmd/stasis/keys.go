package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// identityVariable holds an age identity file's text in the environment.
const identityVariable = "STASIS_IDENTITY"

// commandDeadline bounds how long an --identity-command may take: it may ask a
// vault on the network.
const commandDeadline = 30 * time.Second

// keyFlags say where the keys of the snapshots come from.
type keyFlags struct {
	IdentityFile    string   `help:"age identity file that opens snapshots, in the place of DIR/identity; STASIS_IDENTITY may hold its text." placeholder:"FILE"`
	IdentityCommand string   `help:"Command that prints an age identity file; sh runs it." placeholder:"CMD"`
	Recipient       []string `help:"age public key to seal snapshots to, beside the first identity; may be repeated. With no identity at all this node saves and cannot restore." placeholder:"age1…"`
	ArchiveKeyFile  string   `help:"The secret that archives are named by, in the place of DIR/archive-key; nodes that share a store have the same." placeholder:"FILE"`

	ahead string // identities before those of the source: a rotation's new one
}

// config says where the keys come from. It is asked once: it takes STASIS_IDENTITY
// out of the environment, so that no process that is started later gets it.
func (f keyFlags) config(ctx context.Context, dir string) (c snapshot.KeyConfig, err error) {
	c = snapshot.KeyConfig{Dir: dir, Recipients: f.Recipient}
	if f.ArchiveKeyFile != "" {
		if c.Naming, err = readKeyFile("--archive-key-file", f.ArchiveKeyFile); err != nil {
			return c, err
		}
		if strings.TrimSpace(c.Naming) == "" {
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
		c.Identities, err = runIdentityCommand(ctx, f.IdentityCommand)
	default:
		c.Identities = os.Getenv(identityVariable)
		err = os.Unsetenv(identityVariable)
	}
	c.Identities = f.ahead + c.Identities
	return c, err
}

// source names what gives the identities; "" is DIR/identity.
func (f keyFlags) source() (string, error) {
	var given []string
	for name, value := range map[string]string{"--identity-file": f.IdentityFile, "--identity-command": f.IdentityCommand, identityVariable: os.Getenv(identityVariable)} {
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
	return "", fault.New(fault.Config, "keys", "only one of --identity-file, --identity-command and %s may be given", identityVariable)
}

// readKeyFile reads a file with a secret, which not everybody may read: Chrome
// runs on this machine too.
func readKeyFile(flag, path string) (text string, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.Config, "keys", "%s: there is no %s", flag, path)
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Config, "keys", flag+" cannot be read")
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", fault.Wrap(err, fault.Config, "keys", flag+" cannot be read")
	case info.IsDir():
		return "", fault.New(fault.Config, "keys", "%s: %s is a folder", flag, path)
	case info.Mode().Perm()&0o007 != 0:
		return "", fault.New(fault.Config, "keys", "%s: everybody can read %s: set its mode to 0600", flag, path)
	}
	raw, err := io.ReadAll(io.LimitReader(file, snapshot.MaxKeyFile+1))
	if err == nil && len(raw) > snapshot.MaxKeyFile {
		err = fmt.Errorf("it is larger than %d bytes", snapshot.MaxKeyFile)
	}
	return string(raw), fault.Wrap(err, fault.Config, "keys", flag+" cannot be read")
}

// runIdentityCommand runs a command by sh and returns what it prints. Its standard
// error is this process's own, its input is empty; what it starts ends with it.
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
		return "", fault.New(fault.Config, op, "--identity-command printed more than %d bytes", snapshot.MaxKeyFile)
	case ctx.Err() != nil:
		return "", fault.New(fault.Config, op, "--identity-command did not end within %s", commandDeadline)
	case err != nil:
		return "", fault.Wrap(err, fault.Config, op, "--identity-command failed")
	case len(bytes.TrimSpace(printed.text.Bytes())) == 0:
		return "", fault.New(fault.Config, op, "--identity-command printed nothing")
	}
	return printed.text.String(), nil
}

// withoutSecrets is an environment without this program's own.
func withoutSecrets(environ []string) []string {
	var kept []string
	for _, one := range environ {
		if name, _, _ := strings.Cut(one, "="); name != keyVariable && name != identityVariable {
			kept = append(kept, one)
		}
	}
	return kept
}

// boundedBuffer fails when it is given more than is left. The buffer is no part of
// its face: io.Copy would fill that past the bound.
type boundedBuffer struct {
	text bytes.Buffer
	left int
}

// Write implements io.Writer.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("too much was printed")
	}
	return b.text.Write(p)
}
