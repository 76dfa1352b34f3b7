// Package daemon runs the real stasis binary for tests. It builds the binary once, with
// the race detector if the test has it, starts it on a free port with its own data
// directory, drives it over HTTP, and checks that it leaves nothing behind.
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

// Key is the API key of every daemon under test: admin, for all users.
const Key = "stasis_test_key_0123456789"

// raceExit lets a binary with the race detector end without its second of
// waiting for late reports, which would be a second of every session's end.
const raceExit = "GORACE=atexit_sleep_ms=0"

// uidCount is how many user IDs a daemon has for its Chromes.
const uidCount = 50

// UIDBase gives the first of a range of user IDs that no other daemon of this
// machine has, as far as can be seen to: on its next start a daemon that was
// killed ends whatever runs under the user of a run directory that was left.
func UIDBase() int {
	return 1_000_000 + (os.Getpid()%10_000)*10_000 + int(started.Add(1))%200*uidCount
}

// started counts the daemons of this test binary.
var started atomic.Int64

// addressForm finds the daemon's URL in what it prints, whatever the words around
// it are.
var addressForm = regexp.MustCompile(`https?://\S+`)

// Daemon is one running stasis.
type Daemon struct {
	URL  string // http://127.0.0.1:port
	Dir  string // its data directory
	args []string
	env  []string
	kept int          // spares
	http *http.Client // holds every exchange against openapi.yaml

	cmd  *exec.Cmd
	log  *buffer
	done chan struct{}
	err  error // of the process, once done
}

// Options start a daemon in another way than the default.
type Options struct {
	Dir  string   // data directory; made and removed by the test when empty
	Args []string // further flags of serve
	Env  []string // further environment
	// Prefix is a command that runs the binary, such as setpriv and its flags.
	Prefix []string
	// NoSpares keeps no Chrome ahead of need: for a test that must find the
	// Chrome of a session among the daemon's processes or folders.
	NoSpares bool
	// Standby is how many Chromes it keeps at most with users' defaults brought in.
	Standby int
	// ShellSpare keeps one of the shell engine too, once a session has asked for it.
	ShellSpare bool
	// Tags are build tags of the binary, such as those that leave a protection out.
	// Each set is built once.
	Tags []string
	// Unraced runs a binary without the race detector: for a test of memory, of
	// which the detector takes several times what the daemon does.
	Unraced bool
	// Binary is run in the place of one that is built: one of another version.
	Binary string
	// UIDBase is a range of user IDs from [UIDBase], for a data directory with files
	// that belong to one of them; 0: the daemon gets a range of its own.
	UIDBase int
}

// spares is how many Chromes a daemon keeps ahead of need, whatever machine the
// tests run on.
const spares = 1

// builds are the binaries that were built, by their flags.
var builds struct {
	sync.Mutex
	done map[string]func() (string, error)
}

// build gives a binary that go build makes with these flags. Those who ask for the
// same one wait for one build.
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
	// Other users run it too: Chrome's wardens do not, but a daemon that a test
	// starts without root does.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "stasis")
	args := append([]string{"build", "-o", bin}, flags...)
	out, err := exec.Command("go", append(args, "github.com/stasisd/stasis/cmd/stasis")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
}

// Binary is the path of the binary, built with these build tags.
func Binary(t testing.TB, tags ...string) string {
	t.Helper()
	return built(t, raceFlag, "-tags", strings.Join(tags, ","))
}

func built(t testing.TB, flags ...string) string {
	t.Helper()
	bin, err := build(flags...)
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// binary is what a daemon with these options runs.
func (o Options) binary(t testing.TB) string {
	t.Helper()
	if o.Binary != "" {
		return o.Binary
	}
	if o.Unraced {
		return built(t, "-tags", strings.Join(o.Tags, ","))
	}
	return Binary(t, o.Tags...)
}

// CleanUp removes the binaries that were built; a TestMain calls it last.
func CleanUp() {
	builds.Lock()
	defer builds.Unlock()
	for _, f := range builds.done {
		if bin, err := f(); err == nil {
			_ = os.RemoveAll(filepath.Dir(bin))
		}
	}
}

// DataDir makes a data directory that Chrome's users can pass to; it goes with
// the test.
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
		// That no process is left was seen before; what one had begun to write when it
		// was killed may still come.
		Eventually(t, time.Minute, "the data directory can be removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

// Start runs a daemon until the test ends, and fails the test if it does not
// come up, or leaves a process behind.
func Start(t testing.TB, o Options) *Daemon {
	t.Helper()
	if o.Dir == "" {
		o.Dir = DataDir(t)
	}
	described, err := apitest.New(nil, func(err error) { t.Errorf("not as openapi.yaml says: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	kept := spares
	if o.NoSpares {
		kept = 0
	}
	shells := 0
	if o.ShellSpare {
		shells = 1
	}
	if o.UIDBase == 0 {
		o.UIDBase = UIDBase()
	}
	d := &Daemon{Dir: o.Dir, kept: kept, env: append([]string{fmt.Sprint("STASIS_UID_BASE=", o.UIDBase), fmt.Sprint("STASIS_UID_COUNT=", uidCount),
		fmt.Sprint("STASIS_SPARES=", kept), fmt.Sprint("STASIS_SHELL_SPARES=", shells), fmt.Sprint("STASIS_STANDBY=", o.Standby)}, o.Env...), log: &buffer{}, http: &http.Client{Transport: described}}
	d.args = append(append(append([]string{}, o.Prefix...), o.binary(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", o.Dir), o.Args...)
	t.Cleanup(func() {
		d.Stop(t)
		if t.Failed() {
			t.Logf("of the daemon's log:\n%s", excerpt(d.Log()))
		}
	})
	d.Restart(t)
	return d
}

// Restart starts the daemon again on the same data directory, after Stop or
// Kill, and waits until it has rescued what the one before left. Its URL changes.
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
		t.Fatalf("the daemon did not come up: %v\n%s", d.err, d.Log())
	case <-time.After(60 * time.Second):
		t.Fatalf("the daemon did not come up in time\n%s", d.Log())
	}
}

// launch starts the process, and gives the address once it listens.
func (d *Daemon) launch(t testing.TB) <-chan string {
	t.Helper()
	d.cmd = exec.Command(d.args[0], d.args[1:]...)
	d.cmd.Env = append(append(os.Environ(), "STASIS_API_KEY="+Key, raceExit), d.env...)
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
				default: // it is known
				}
			}
		}
		_, _ = io.Copy(io.Discard, stdout)
		d.err = d.cmd.Wait()
	}()
	return addr
}

// Stop ends the daemon with SIGTERM and waits; it is idempotent.
func (d *Daemon) Stop(t testing.TB) {
	t.Helper()
	if !d.running() {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(90 * time.Second):
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // for the goroutines in the log
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

// Kill ends the daemon with SIGKILL and waits for the daemon alone.
func (d *Daemon) Kill(t testing.TB) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-d.done
}

// KillStarting starts the daemon and ends it with SIGKILL a while later, whether
// it has come up by then or not.
func (d *Daemon) KillStarting(t testing.TB, after time.Duration) {
	t.Helper()
	d.launch(t)
	select {
	case <-time.After(after): // how far the start has come
	case <-d.done:
		t.Fatalf("the daemon did not come up: %v\n%s", d.err, d.Log())
	}
	d.Kill(t)
}
