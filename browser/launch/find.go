package launch

import (
	"context"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// MinMajor is the oldest major version of Chrome that is accepted.
const MinMajor = 140

// install is the command that installs a missing Chrome.
const install = "install one with: apt-get update && apt-get install chromium"

// installShell is the command that installs a missing headless shell.
const installShell = "install it with: apt-get update && apt-get install chromium-headless-shell"

// Version describes a Chrome binary, from its --version.
type Version struct {
	Binary string // its path
	Name   string // Chromium or Google Chrome
	Full   string // such as 156.0.8078.79
	Major  int
}

// candidates are the usual paths of Chrome. The real binaries come first, because the
// wrapper scripts of distributions add their own flags.
var candidates = []string{
	"/usr/lib/chromium/chromium",
	"/usr/lib/chromium-browser/chromium-browser",
	"/usr/lib64/chromium-browser/chromium-browser",
	"/opt/google/chrome/chrome",
	"/opt/chromium.org/chromium/chrome",
	"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", // in PATH
}

// Find returns the path of the Chrome to run: the configured one if set, else the first
// of the usual paths. Errors: ChromeMissing.
func Find(configured string) (string, error) {
	const op = "launch.find"
	if configured != "" {
		path, err := exec.LookPath(configured)
		return path, fault.Wrap(err, fault.ChromeMissing, op,
			"the configured Chrome is not an executable file; name another (--chrome) or "+install)
	}
	for _, candidate := range candidates {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fault.New(fault.ChromeMissing, op, "no Chrome was found; %s", install)
}

// shells are the usual paths of the headless shell.
var shells = []string{
	"/usr/lib/chromium/chromium-headless-shell",
	"/usr/lib/chromium-browser/headless_shell",
	"chrome-headless-shell", // in PATH
}

// findShell returns the path of the headless shell: the configured one if set, else the
// first of the usual paths, or "" if there is none. Errors: ChromeMissing if the
// configured one does not exist.
func findShell(configured string) (string, error) {
	if configured != "" {
		path, err := exec.LookPath(configured)
		return path, fault.Wrap(err, fault.ChromeMissing, "launch.find",
			"the configured headless shell is not an executable file; name another (--shell) or "+installShell)
	}
	for _, candidate := range shells {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", nil
}

// nameIn returns the browser's name in the output of --version.
func nameIn(text string) string {
	if strings.HasPrefix(text, "Google Chrome") {
		return "Google Chrome"
	}
	return "Chromium"
}

var versionNumber = regexp.MustCompile(`\b(\d+)\.\d+\.\d+\.\d+\b`)

// parseVersion extracts the version from "Chromium 156.0.8078.79 built on …".
func parseVersion(text string) (full string, major int, err error) {
	found := versionNumber.FindStringSubmatch(text)
	if found == nil {
		return "", 0, fault.New(fault.ChromeMissing, "launch.version",
			"the binary of --chrome or --shell printed no Chrome version; name another, or %s", install)
	}
	if major, err = strconv.Atoi(found[1]); err != nil || major < MinMajor {
		return "", 0, fault.New(fault.ChromeMissing, "launch.version",
			"Chrome %s is too old; the oldest supported version is %d; %s", found[0], MinMajor, install)
	}
	return found[0], major, nil
}

// Version returns the version of Chrome or of the headless shell. It runs each binary
// once. Errors: ChromeMissing (not executable, or too old), Unsupported if there is no
// shell, Timeout.
func (l *Launcher) Version(ctx context.Context, dir *Dir, shell bool) (Version, error) {
	binary, err := l.binaryOf(shell)
	if err != nil {
		return Version{}, err
	}
	l.mu.Lock()
	known, asked := l.versions[binary]
	l.mu.Unlock()
	if asked {
		return known, nil
	}
	v, err := l.askVersion(ctx, dir, binary)
	if err == nil {
		l.mu.Lock()
		l.versions[binary] = v
		l.mu.Unlock()
	}
	return v, err
}

// askVersion runs the binary with --version, as Chrome's user and with Chrome's
// environment.
func (l *Launcher) askVersion(ctx context.Context, dir *Dir, binary string) (Version, error) {
	var out strings.Builder
	cmd := exec.CommandContext(ctx, binary, "--version")
	cmd.Dir, cmd.Env = dir.Path, environment(dir, "")
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if l.uids != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(dir.UID), Gid: uint32(dir.UID)}
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return Version{}, fault.Wrap(ctx.Err(), fault.Timeout, "launch.version", "")
		}
		return Version{}, fault.Wrap(err, fault.ChromeMissing, "launch.version", "the binary of --chrome or --shell cannot be executed, or fails with --version; name another, or "+install)
	}
	full, major, err := parseVersion(out.String())
	return Version{Binary: binary, Name: nameIn(out.String()), Full: full, Major: major}, err
}
