package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// openProbe is a script that runs in place of Chrome. It writes down which of the files in
// a list it can open, and then starts Chrome.
const openProbe = `#!/bin/sh
if [ "$1" != --version ]; then
	while read -r path; do
		if [ -d "$path" ]; then ls "$path" | head -n 1 | grep -q . && echo "$path"; else head -c 1 "$path" >/dev/null && echo "$path"; fi
	done <"${0%/*}/paths" >"$TMPDIR/opened" 2>/dev/null
fi
exec /usr/lib/chromium/NAME "$@"
`

// A program in place of Chrome cannot open files of the machine, of the daemon or of
// another session. This holds for a daemon of root and of an ordinary user. In make test
// each of them has one engine.
func TestLandlockLeavesNothingToRead(t *testing.T) {
	t.Parallel()
	for user, engines := range map[string][]string{"root": {"shell", "chrome"}, "ordinary user": {"chrome", "shell"}} {
		if !storetest.Long() {
			engines = engines[:1]
		}
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			beside := daemon.DataDir(t)
			o := daemon.Options{NoSpares: true, Args: []string{"--chrome", beside + "/chromium", "--shell", beside + "/chromium-headless-shell"}}
			if user != "root" {
				o = byOrdinaryUser(t, o)
			}
			err := errors.Join(os.Chmod(beside, 0o755), os.WriteFile(beside+"/paths", nil, 0o644))
			for _, binary := range []string{"chromium", "chromium-headless-shell"} {
				err = errors.Join(err, os.WriteFile(filepath.Join(beside, binary), []byte(strings.ReplaceAll(openProbe, "NAME", binary)), 0o755))
			}
			readable := filepath.Join(daemon.DataDir(t), "readable")
			if err = errors.Join(err, os.WriteFile(readable, []byte("secret"), 0o644)); err != nil {
				t.Fatal(err)
			}
			d := daemon.Start(t, o)
			other := begin(t, d, obj{"engine": "shell"})
			upload := filepath.Join(onlyRunDir(t, d), "files", "upload.txt")
			if err := os.WriteFile(upload, []byte("secret"), 0o644); err != nil {
				t.Fatal(err)
			}
			of := fmt.Sprintf("/proc/%d/", d.PID())
			paths := []string{readable, "/etc/passwd", "/var/lib/dpkg/status", "/", "/etc", "/proc/1/environ", filepath.Dir(upload), upload, d.Dir, filepath.Join(d.Dir, "run"),
				filepath.Join(d.Dir, "stasis.db"), filepath.Join(d.Dir, "identity"), of + "environ", of + "fd/0", of + "cwd/.", of + "root/etc/passwd", "/etc/hosts"}
			if err := os.WriteFile(beside+"/paths", []byte(strings.Join(paths, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			known := runDirs(t, d)
			for _, engine := range engines {
				s := begin(t, d, obj{"engine": engine})
				for _, dir := range runDirs(t, d) {
					if dir == known[0] {
						continue
					}
					opened, err := os.ReadFile(filepath.Join(d.Dir, "run", dir, "tmp", "opened"))
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff("/etc/hosts\n", string(opened)); diff != "" {
						t.Errorf("%s opened (-want +got):\n%s", engine, diff)
					}
				}
				finish(t, d, s.ID, throwAway)
			}
			finish(t, d, other.ID, throwAway)
			d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil)
		})
	}
}

// On a kernel without Landlock the daemon says so and exits. With --no-landlock it runs,
// logs a warning, and readyz reports it.
func TestLandlockMissing(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var ready struct {
		Landlock struct {
			Enforced bool
			ABI      int
		}
	}
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil).Into(t, &ready)
	if !ready.Landlock.Enforced || ready.Landlock.ABI < 2 || strings.Contains(d.Log(), "Landlock is off") {
		t.Errorf("with Landlock, readyz says %+v", ready)
	}

	prefix := []string{self, withoutLandlockArg}
	code, said := serve(t, prefix, "--data-dir", daemon.DataDir(t))
	if code != 4 || !strings.Contains(said, "no Landlock") || !strings.Contains(said, "--no-landlock") {
		t.Errorf("exit code %d, want 4 with --no-landlock:\n%s", code, said)
	}
	d = daemon.Start(t, daemon.Options{Prefix: prefix, NoSpares: true, Args: []string{"--no-landlock"}})
	d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil).Into(t, &ready)
	if ready.Landlock.Enforced || ready.Landlock.ABI != 0 {
		t.Errorf("readyz says %+v", ready)
	}
	if log := d.Log(); !strings.Contains(log, "Landlock is off") {
		t.Error("the log has no warning")
	}
	finish(t, d, begin(t, d, obj{"engine": "shell"}).ID, throwAway)
}

// withoutLandlockArg is a first argument of this test binary. With it, the binary runs
// the command in the other arguments as on a kernel without Landlock.
const withoutLandlockArg = "without-landlock"

// withoutLandlock replaces this process by the command, with a filter on system calls.
// The filter answers landlock_create_ruleset as such a kernel does. It returns only if
// that fails.
func withoutLandlock(command []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // seccomp_data.nr
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.EOPNOTSUPP)}, // SECCOMP_RET_ERRNO
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},                           // SECCOMP_RET_ALLOW
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return syscall.Exec(command[0], command, os.Environ())
}
