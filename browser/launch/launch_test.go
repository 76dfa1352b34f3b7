package launch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary is also the warden, as the daemon's binary is, and a helper that some
// tests start as a separate process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case WardenArg:
			os.Exit(WardenMain(os.Args[2:]))
		case helperArg:
			os.Exit(helperMain(os.Args[2], os.Args[3]))
		}
	}
	goleak.VerifyTestMain(m)
}

// deadline is how long a test waits for a condition before it fails.
const deadline = 20 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// await fails the test unless the condition becomes true in time.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx := within(t)
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// shortTemp is like t.TempDir, but its path is short enough for Chrome's socket, and
// Chrome's users can enter it.
func shortTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "l")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// testUIDs is outside the default range, which a daemon may be using.
var testUIDs = UIDRange{Base: 310000, Count: 50}

func newLauncher(t *testing.T, binary string) *Launcher {
	t.Helper()
	l, err := New(Config{Binary: binary, Root: shortTemp(t) + "/run", UIDs: testUIDs})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func newDir(t *testing.T, l *Launcher, name string) *Dir {
	t.Helper()
	dir, err := l.NewDir(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Remove(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start starts a Chrome whose tree must have ended after the test.
func start(t *testing.T, l *Launcher, o Options) *Process {
	t.Helper()
	if o.Dir == nil {
		o.Dir = newDir(t, l, "s")
	}
	p, err := l.Start(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		if err := p.Kill(ctx); err != nil {
			t.Error(err)
		}
		if err := p.Pipe().Close(); err != nil {
			t.Error(err)
		}
		for _, q := range processes() {
			if !q.dead() && o.Dir.runsHere(q.pid) {
				t.Errorf("process %d still runs: %s", q.pid, commandLine(q.pid))
			}
		}
	})
	return p
}

// client sends raw CDP messages.
type client struct {
	t      *testing.T
	p      *Process
	pipe   io.ReadWriter
	in     *bufio.Reader
	nextID int
}

func newClient(t *testing.T, p *Process) *client {
	return &client{t: t, p: p, pipe: p.Pipe(), in: bufio.NewReader(p.Pipe())}
}

// call sends a command without parameters and returns its result.
func (c *client) call(method string) map[string]any {
	c.t.Helper()
	// End a Chrome that does not answer, which also ends the read.
	defer context.AfterFunc(within(c.t), c.p.cutLifeline)()
	c.nextID++
	if _, err := fmt.Fprintf(c.pipe, `{"id":%d,"method":%q}`+"\x00", c.nextID, method); err != nil {
		c.t.Fatal(err)
	}
	for {
		message, err := c.in.ReadBytes(0)
		if err != nil {
			c.t.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID     int
			Result map[string]any
			Error  any
		}
		if err := json.Unmarshal(bytes.TrimSuffix(message, []byte{0}), &answer); err != nil {
			c.t.Fatal(err)
		}
		if answer.ID != c.nextID {
			continue
		}
		if answer.Error != nil {
			c.t.Fatalf("%s: %v", method, answer.Error)
		}
		return answer.Result
	}
}

// close makes Chrome close. Chrome may exit before it answers.
func (c *client) close() {
	c.t.Helper()
	if _, err := io.WriteString(c.pipe, `{"id":0,"method":"Browser.close"}`+"\x00"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) version() {
	c.t.Helper()
	if product, _ := c.call("Browser.getVersion")["product"].(string); !strings.HasPrefix(product, "Chrome/") {
		c.t.Fatalf("product is %q", product)
	}
}

// hasRenderer reports whether the tree has started, including a renderer.
func hasRenderer(p *Process) bool {
	for _, pid := range p.Processes() {
		if bytes.Contains(commandLine(pid), []byte("--type=renderer")) {
			return true
		}
	}
	return false
}
