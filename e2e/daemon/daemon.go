// Package daemon runs the real stasis binary for tests. It builds the binary once, with
// the race detector if the test has it. It starts the binary on a free port with its own
// data directory, calls it over HTTP, and checks how it stops.
package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/apitest"
)

// Key is the API key of every daemon under test. It has all rights, for all users.
const Key = "stasis_test_key_0123456789"

// raceExit makes a binary with the race detector exit at once. By default it first waits
// a second for late reports, and every end of a session would take a second longer.
const raceExit = "GORACE=atexit_sleep_ms=0"

// uidCount is the number of user IDs that a daemon has for its Chromes. A test binary starts
// fewer than maxDaemons daemons, some of which run almost until its end.
const (
	uidCount   = 50
	maxDaemons = 400
)

// UIDBase returns the first of a range of user IDs. Other daemons on this machine are
// unlikely to have the same range. After a kill, the next daemon ends all processes of
// the users whose run directories are left.
func UIDBase() int {
	return 1_000_000 + (os.Getpid()%10_000)*maxDaemons*uidCount + int(started.Add(1))%maxDaemons*uidCount
}

// started counts the daemons of this test binary.
var started atomic.Int64

// addressForm finds the daemon's URL in its output.
var addressForm = regexp.MustCompile(`https?://\S+`)

// Daemon is one running stasis.
type Daemon struct {
	URL    string // http://127.0.0.1:port
	Dir    string // its data directory
	args   []string
	env    []string
	spares int          // of full Chrome
	http   *http.Client // checks every exchange against openapi.yaml

	cmd  *exec.Cmd
	log  *buffer
	done chan struct{}
	err  error // of the process, once done is closed
}

// Options change how [Start] runs a daemon. The zero value is the default.
type Options struct {
	Dir  string   // data directory; if empty, Start makes one and the test removes it
	Args []string // further flags of serve
	Env  []string // further environment variables
	// Prefix is a command that runs the binary, such as setpriv and its flags.
	Prefix []string
	// NoSpares keeps no spare Chrome, which saves time. A test also needs it to find a
	// session's Chrome among the daemon's processes or folders.
	NoSpares bool
	// Standby is the largest number of Chromes that wait with users' defaults loaded.
	Standby int
	// ShellSpare keeps a spare of the shell engine too, after a session has asked for it.
	ShellSpare bool
	// Tags are build tags of the binary, such as those that remove a protection. Each
	// set is built once.
	Tags []string
	// Unraced runs a binary without the race detector. Tests of memory need it, because
	// the detector uses several times the memory of the daemon.
	Unraced bool
	// Preflight has the daemon test Chrome at its start, as it does by default.
	Preflight bool
	// Binary is the path of another binary to run, such as one of an older version.
	Binary string
	// UIDBase is the result of an earlier call of [UIDBase], for a data directory with
	// files of these users. If it is 0, Start calls [UIDBase].
	UIDBase int
}

// defaultSpares is the number of spare Chromes of a daemon, on any machine.
const defaultSpares = 1

// builds has the binaries that were built, by their flags.
var builds struct {
	sync.Mutex
	done map[string]func() (string, error)
}

// build returns the path of a binary that go build makes with these flags. Concurrent
// calls with the same flags wait for one build.
func build(flags ...string) (string, error) {
	key := strings.Join(flags, " ")
	builds.Lock()
	f := builds.done[key]
	if f == nil {
		f = sync.OnceValues(func() (string, error) { return buildOne(flags) })
		if builds.done == nil {
			builds.done = map[string]func() (string, error){}
		}
		builds.done[key] = f
	}
	builds.Unlock()
	return f()
}

func buildOne(flags []string) (string, error) {
	dir, err := os.MkdirTemp("", "stasis-e2e-")
	if err != nil {
		return "", err
	}
	// Some tests run the daemon as an ordinary user, who must be able to enter the folder.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "stasis")
	// Without debug information, as `make build` does, linking takes half the time.
	args := append([]string{"build", "-ldflags", "-s -w", "-o", bin}, flags...)
	out, err := exec.Command("go", append(args, "github.com/stasisd/stasis/cmd/stasis")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
}

// Binary returns the path of the binary, built with these build tags.
func Binary(t testing.TB, tags ...string) string {
	t.Helper()
	return built(t, raceFlag, "-tags", strings.Join(tags, ","))
}

// BinaryOf returns the path of the binary, built with another version.
func BinaryOf(t testing.TB, version string) string {
	t.Helper()
	return built(t, raceFlag, "-ldflags", "-X main.version="+version)
}

func built(t testing.TB, flags ...string) string {
	t.Helper()
	bin, err := build(flags...)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// binary returns the path of the binary that a daemon with these options runs.
func (o Options) binary(t testing.TB) string {
	t.Helper()
	if o.Binary != "" {
		return o.Binary
	}
	if o.Unraced {
		return built(t, "-race=false", "-tags", strings.Join(o.Tags, ","))
	}
	return Binary(t, o.Tags...)
}

// CleanUp removes the binaries that were built. A TestMain calls it after all tests.
func CleanUp() {
	builds.Lock()
	defer builds.Unlock()
	for _, f := range builds.done {
		if bin, err := f(); err == nil {
			_ = os.RemoveAll(filepath.Dir(bin))
		}
	}
}

// DataDir makes a data directory that the users of Chromes can enter. It is removed at
// the end of the test.
func DataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A write that was in progress when a process was killed may still create a file.
		Eventually(t, time.Minute, "the data directory can be removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

// Start runs a daemon until the test ends. The test fails if the daemon does not start,
// if an exchange differs from openapi.yaml, or if the daemon does not stop cleanly.
func Start(t testing.TB, o Options) *Daemon {
	t.Helper()
	if o.Dir == "" {
		o.Dir = DataDir(t)
	}
	checked, err := apitest.New(nil, func(err error) { t.Errorf("the exchange differs from openapi.yaml: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	spares := defaultSpares
	if o.NoSpares {
		spares = 0
	}
	shells := 0
	if o.ShellSpare {
		shells = 1
	}
	if o.UIDBase == 0 {
		o.UIDBase = UIDBase()
	}
	if !o.Preflight { // it would take a fifth of the time of all tests
		o.Env = append([]string{"STASIS_NO_PREFLIGHT=true"}, o.Env...)
	}
	d := &Daemon{Dir: o.Dir, spares: spares, env: append([]string{fmt.Sprint("STASIS_UID_BASE=", o.UIDBase), fmt.Sprint("STASIS_UID_COUNT=", uidCount),
		fmt.Sprint("STASIS_SPARES=", spares), fmt.Sprint("STASIS_SHELL_SPARES=", shells), fmt.Sprint("STASIS_STANDBY=", o.Standby)}, o.Env...), log: &buffer{}, http: &http.Client{Transport: checked}}
	d.args = append(append(append([]string{}, o.Prefix...), o.binary(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", o.Dir), o.Args...)
	t.Cleanup(func() {
		d.Stop(t)
		if t.Failed() {
			t.Logf("excerpt of the daemon's log:\n%s", excerpt(d.Log()))
		}
	})
	d.Restart(t)
	return d
}

// Restart starts the daemon again on the same data directory, after Stop or Kill. It
// waits until the daemon has rescued the sessions of the last one. The URL changes.
func (d *Daemon) Restart(t testing.TB) {
	t.Helper()
	d.Relaunch(t)
	d.Rescued(t)
}

// Relaunch is Restart without the wait for the rescue.
func (d *Daemon) Relaunch(t testing.TB) {
	t.Helper()
	listens := d.launch(t)
	select {
	case d.URL = <-listens:
	case <-d.done:
		t.Fatalf("the daemon ended before it listened: %v\n%s", d.err, d.Log())
	case <-time.After(2 * time.Minute):
		t.Fatalf("the daemon did not listen in time\n%s", d.Log())
	}
}

// launch starts the process. The channel receives the URL when the daemon listens.
func (d *Daemon) launch(t testing.TB) <-chan string {
	t.Helper()
	d.cmd = exec.Command(d.args[0], d.args[1:]...)
	d.cmd.Env = append(append(os.Environ(), "STASIS_API_KEY="+Key, "STASIS_CONFIG=", raceExit), d.env...)
	d.cmd.Stderr = d.log
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr := make(chan string, 1)
	d.done = make(chan struct{})
	go func() {
		defer close(d.done)
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if at := addressForm.FindString(lines.Text()); at != "" {
				select {
				case addr <- at:
				default: // the URL is already known
				}
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
		d.err = d.cmd.Wait()
	}()
	return addr
}

// Stop ends the daemon with SIGTERM and waits. It may be called more than once. The test
// fails if the daemon returns an error, does not stop in time or had a data race.
func (d *Daemon) Stop(t testing.TB) {
	t.Helper()
	if !d.running() {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(3 * time.Minute):
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // writes the goroutines to the log
		<-d.done
		t.Errorf("the daemon did not stop in time")
	}
	var exit *exec.ExitError
	if errors.As(d.err, &exit) {
		t.Errorf("the daemon ended with %v", d.err)
	}
	if strings.Contains(d.Log(), "DATA RACE") {
		t.Errorf("the daemon has a data race")
	}
}

// Kill ends the daemon with SIGKILL and waits for the daemon, but not for its Chromes.
func (d *Daemon) Kill(t testing.TB) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-d.done
}

// KillStarting starts the daemon and ends it with SIGKILL after the given time, even if
// it does not listen yet.
func (d *Daemon) KillStarting(t testing.TB, after time.Duration) {
	t.Helper()
	d.launch(t)
	select {
	case <-time.After(after):
	case <-d.done:
		t.Fatalf("the daemon ended before it was killed: %v\n%s", d.err, d.Log())
	}
	d.Kill(t)
}
