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

// install is the command that mends a missing Chrome.
const install = "install one with: apt-get update && apt-get install chromium"

// Version is what a Chrome says it is.
type Version struct {
	Binary string // its path
	Full   string // such as 156.0.8078.79
	Major  int
}

// candidates are the places of Chrome: the real binaries first, since the
// scripts that distributions put before them add flags of their own.
var candidates = []string{
	"/usr/lib/chromium/chromium",
	"/usr/lib/chromium-browser/chromium-browser",
	"/usr/lib64/chromium-browser/chromium-browser",
	"/opt/google/chrome/chrome",
	"/opt/chromium.org/chromium/chrome",
	"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", // in PATH
}

// Find returns the path of the Chrome to run: the configured one if there is
// one, else the first of the usual places. Errors: ChromeMissing.
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

var versionNumber = regexp.MustCompile(`\b(\d+)\.\d+\.\d+\.\d+\b`)

// parseVersion reads a version out of "Chromium 156.0.8078.79 built on …".
func parseVersion(text string) (full string, major int, err error) {
	found := versionNumber.FindStringSubmatch(text)
	if found == nil {
		return "", 0, fault.New(fault.ChromeMissing, "launch.version",
			"the configured binary does not say which Chrome it is; %s", install)
	}
	if major, err = strconv.Atoi(found[1]); err != nil || major < MinMajor {
		return "", 0, fault.New(fault.ChromeMissing, "launch.version",
			"Chrome %s is too old, %d is the least; %s", found[0], MinMajor, install)
	}
	return found[0], major, nil
}

// version asks the binary for its version, as Chrome's user and with Chrome's
// environment.
func (l *Launcher) version(ctx context.Context, dir *Dir) (Version, error) {
	var out strings.Builder
	cmd := exec.CommandContext(ctx, l.binary, "--version")
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
		return Version{}, fault.Wrap(err, fault.ChromeMissing, "launch.version", "Chrome's binary cannot be executed; "+install)
	}
	full, major, err := parseVersion(out.String())
	return Version{Binary: l.binary, Full: full, Major: major}, err
}
