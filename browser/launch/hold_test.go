package launch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/fault"
)

// databases returns the SQLite databases that a Chrome has created.
func databases(t *testing.T, p *Process) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"History", "Cookies", "Web Data"} {
		found, err := filepath.Glob(filepath.Join(p.dir.Profile(), "*", name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// A Chrome whose opens of databases wait answers, shows a page, can be frozen, and has
// opened no database. It opens them once they are released, and then ends by itself.
func TestHold(t *testing.T) {
	l := newLauncher(t, "")
	for _, frozen := range []bool{false, true} {
		dir := newDir(t, l, map[bool]string{false: "f", true: "t"}[frozen])
		p := start(t, l, Options{Dir: dir, URL: "about:blank", Hold: true})
		c := newClient(t, p)
		c.version()
		await(t, "a renderer", func() bool { return hasRenderer(p) })
		await(t, "Chrome has created its profile", func() bool {
			_, err := os.Stat(filepath.Join(p.dir.Profile(), "Default", "Local Storage", "leveldb", "CURRENT"))
			return err == nil
		})
		if frozen {
			if err := p.Freeze(within(t)); err != nil {
				t.Fatal(err)
			}
			if err := p.Thaw(within(t)); err != nil {
				t.Fatal(err)
			}
			c.version()
		}
		if found := databases(t, p); len(found) != 0 {
			t.Errorf("frozen %v: Chrome has opened %v", frozen, found)
		}
		if err := p.Release(); err != nil {
			t.Fatal(err)
		}
		await(t, "Chrome has opened its databases", func() bool { return len(databases(t, p)) == 3 })
		c.close()
		if err := p.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		if exit := p.ExitState(); !exit.Clean() {
			t.Errorf("frozen %v: ended with %+v", frozen, exit)
		}
	}
}

// A Chrome whose opens wait can be killed.
func TestHoldKilled(t *testing.T) {
	l := newLauncher(t, "")
	p := start(t, l, Options{URL: "about:blank", Hold: true})
	newClient(t, p).version()
	if err := p.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
}

// If a supervisor of the daemon already listens for its system calls, Chrome's opens
// cannot be made to wait: the kernel allows one listener. The error says so.
func TestHoldBelowAListener(t *testing.T) {
	_, o := startHelper(t, "hold-below-a-listener", shortTemp(t)+"/run", nil)
	if o.Code != fault.Unsupported {
		t.Errorf("%+v", o)
	}
}

// holdBelowAListener starts a Chrome with Hold on a thread whose system calls are listened
// to already.
func holdBelowAListener(root string) error {
	runtime.LockOSThread()
	h, err := newHold()
	if err != nil {
		return err
	}
	h.release()
	l, err := New(Config{Root: root, UIDs: testUIDs})
	if err != nil {
		return err
	}
	dir, err := l.NewDir("held")
	if err != nil {
		return err
	}
	_, err = l.Start(context.Background(), Options{Dir: dir, URL: "about:blank", Hold: true})
	return err
}

// After the release, a new open passes at once: a page that uses storage does not wait for the
// databases of Chrome's start. The opens that waited pass later.
func TestHoldOrder(t *testing.T) {
	_, o := startHelper(t, "hold-order", t.TempDir(), nil)
	if o.Detail != "" {
		t.Error(o.Detail)
	}
}

// holdOrder opens a database in one process before the release, and in another after it.
func holdOrder(root string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	runtime.LockOSThread() // children inherit the filter of this thread
	h, err := newHold()
	if err != nil {
		return err
	}
	later := make(chan time.Time)
	h.later = later
	open := func(name string) *exec.Cmd {
		return exec.CommandContext(ctx, "/proc/self/exe", helperArg, "open-database", filepath.Join(root, name))
	}
	first := open("first")
	if err := first.Start(); err != nil {
		return err
	}
	holds := func(condition func() bool) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return condition()
	}
	for !holds(func() bool { return len(h.waiting) > 0 }) && ctx.Err() == nil {
		runtime.Gosched()
	}
	go h.release()
	for !holds(func() bool { return h.released }) && ctx.Err() == nil {
		runtime.Gosched()
	}
	if err := open("second").Run(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "second")); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "first")); err == nil {
		return errors.New("the open that waited passed at once")
	}
	select {
	case later <- time.Time{}:
	case <-ctx.Done():
	}
	if err := first.Wait(); err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(root, "first"))
	return err
}

// openDatabase opens a file as Chrome opens databases.
func openDatabase(name string) error {
	fd, err := unix.Open(name, databaseOpen, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
