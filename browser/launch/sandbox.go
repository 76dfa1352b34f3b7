package launch

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// confinePause is the time between two checks of a renderer that may not have confined
// itself yet.
const confinePause = 5 * time.Millisecond

// confineTimeout is how long a new Chrome may take to have a confined renderer.
const confineTimeout = 20 * time.Second

// awaitConfined returns nil once both layers of the sandbox confine a renderer of the
// tree, or errUnconfined after confineTimeout.
func (p *Process) awaitConfined(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, confineTimeout)
	defer cancel()
	for {
		main := len(statusFields(p.PID(), "NSpid"))
		for _, pid := range p.Processes() {
			if bytes.Contains(commandLine(pid), []byte("--type=renderer")) && confined(pid, main) {
				return nil
			}
		}
		select {
		case <-p.done:
			return errors.New("chrome ended before its sandbox was checked")
		case <-ctx.Done():
			return errUnconfined
		case <-time.After(confinePause):
		}
	}
}

// confined reports whether a process has a filter on its system calls and runs in a PID
// namespace below that of Chrome's main process. depth is the main process's depth. Both
// are read from /proc/PID/status. Unlike its namespaces, an unprivileged daemon may read
// that file.
func confined(pid, depth int) bool {
	const filtered = "2" // SECCOMP_MODE_FILTER
	seccomp := statusFields(pid, "Seccomp")
	return len(seccomp) == 1 && seccomp[0] == filtered && len(statusFields(pid, "NSpid")) > depth
}

// blamesSandbox reports whether Chrome's standard error mentions its sandbox.
func blamesSandbox(stderr string) bool {
	for _, words := range []string{
		"No usable sandbox", "Failed to move to new namespace", "zygote_host_impl_linux",
		"credentials.cc", "SUID sandbox helper", "without --no-sandbox is not supported",
	} {
		if strings.Contains(stderr, words) {
			return true
		}
	}
	return false
}

// hostFiles returns the machine's file system, for [remedy].
func hostFiles() fs.FS { return os.DirFS("/") }

// remedy returns what makes Chrome's sandbox work on the machine with these files. The
// sandbox needs user namespaces for non-root users.
func remedy(host fs.FS) string {
	setting := func(name string) string {
		text, err := fs.ReadFile(host, "proc/sys/"+name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(text))
	}
	exists := func(name string) bool {
		_, err := fs.Stat(host, name)
		return err == nil
	}
	where := ""
	inContainer := exists(".dockerenv") || exists("run/.containerenv")
	if inContainer {
		where = " on the host"
	}
	switch {
	case setting("kernel/unprivileged_userns_clone") == "0":
		return "run" + where + ": sysctl -w kernel.unprivileged_userns_clone=1"
	case setting("user/max_user_namespaces") == "0":
		return "run" + where + ": sysctl -w user.max_user_namespaces=10000"
	case setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "run" + where + ": sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case inContainer:
		return "start the container with the seccomp profile that comes with Stasis: " +
			"docker run --security-opt seccomp=docker/seccomp.json …"
	}
	return "user namespaces must be allowed for users other than root " +
		"(user.max_user_namespaces above 0, no seccomp profile that forbids clone with CLONE_NEWUSER, no chroot)"
}
