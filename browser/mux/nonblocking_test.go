package mux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func osPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// joined combines one side's ends of two pipes.
type joined struct{ r, w *os.File }

func (j joined) Read(b []byte) (int, error)  { return j.r.Read(b) }
func (j joined) Write(b []byte) (int, error) { return j.w.Write(b) }
func (j joined) Close() error                { return errors.Join(j.r.Close(), j.w.Close()) }

// nonblockingPipe is a joined that can also write without blocking.
type nonblockingPipe joined

func (p nonblockingPipe) Read(b []byte) (int, error)  { return p.r.Read(b) }
func (p nonblockingPipe) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p nonblockingPipe) Close() error                { return joined(p).Close() }

func (p nonblockingPipe) WriteNow(b []byte) (n int) {
	raw, err := p.w.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), b)
		return true
	})
	return max(0, n)
}

// nonblockingConn is a testConn that accepts messages at once as long as they fit.
type nonblockingConn struct {
	*testConn
	writes sync.Mutex // held during a Write
}

func (c *testConn) ends() (in, out chan []byte) { return c.in, c.out }

func (e *nonblockingConn) TryWrite(msg []byte) bool {
	if !e.writes.TryLock() {
		e.t.Error("TryWrite was called during a Write")
		return false
	}
	defer e.writes.Unlock()
	select {
	case e.out <- msg:
		return true
	default:
		return false
	}
}

func (e *nonblockingConn) Write(ctx context.Context, msg []byte) error {
	e.writes.Lock()
	defer e.writes.Unlock()
	return e.testConn.Write(ctx, msg)
}

// A client's messages keep their order if some are accepted at once and others wait until
// it reads.
func TestOffersKeepOrder(t *testing.T) {
	const n = 2000
	m, f := start(t, Options{}, nil)
	c := &nonblockingConn{testConn: newConn(t)}
	serveConn(t, m, ServeOptions{}, c.testConn, c)
	c.call(1, "", "Page.enable", "{}")
	root := f.wait(1, method("Page.enable"))[0].Session
	go func() {
		for i := range n {
			f.emit(root, "Page.x", fmt.Sprintf(`{"i":%d}`, i))
		}
	}()
	for i := range n {
		if got := c.recv().param("i"); got != fmt.Sprint(i) {
			t.Fatalf("message %d is %s", i, got)
		}
	}
}

// Messages reach Chrome whole and in each sender's order through a pipe that accepts them
// in parts. This includes a sender that disconnects in the middle of a message: without
// the rest of it Chrome could read nothing more.
func TestNonblockingPipeKeepsMessagesWhole(t *testing.T) {
	const senders, each = 4, 40
	r, w := osPipe(t)
	in := frames{r: r}
	o := newOutbox(nonblockingPipe{r, w})
	var all sync.WaitGroup
	leaves := o.lane(0)
	leaves.post(append([]byte("leaver "+strings.Repeat("x", 1<<20)), 0))
	leaves.drop()
	all.Go(func() {
		if err := o.run(); err != nil {
			t.Error(err)
		}
	})
	for s := range senders {
		all.Go(func() {
			l := o.lane(1 << 18)
			for i := range each {
				// Some fit into the pipe and some do not.
				body := strings.Repeat("x", i%5*(40<<10))
				if err := l.send(t.Context(), fmt.Appendf(nil, "%d %d %s\x00", s, i, body)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var next [senders]int
	for n := range senders*each + 1 {
		msg, _, err := in.next()
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			if !bytes.HasPrefix(msg, []byte("leaver ")) || len(msg) != 7+1<<20 {
				t.Fatalf("the partly written message arrived as %d bytes %.10q", len(msg), msg)
			}
			continue
		}
		var s, i int
		if _, err := fmt.Sscan(string(msg[:min(len(msg), 20)]), &s, &i); err != nil {
			t.Fatal(err)
		}
		if i != next[s] || len(msg) != len(fmt.Sprintf("%d %d ", s, i))+i%5*(40<<10) {
			t.Fatalf("sender %d: message %d of %d bytes, want %d", s, i, len(msg), next[s])
		}
		next[s]++
	}
	o.close()
	all.Wait()
	if err := (joined{r, w}).Close(); err != nil {
		t.Error(err)
	}
}
