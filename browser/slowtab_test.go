package browser

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// slowly releases a restore's tabs while their renderers are stopped. It continues the
// renderers when the channel reports a request that came too early, or after two seconds.
func (s *Standby) slowly(t *testing.T, early <-chan struct{}) {
	t.Helper()
	var renderers []int
	for _, pid := range s.b.process.Processes() {
		if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(line, []byte("--type=renderer")) {
			renderers = append(renderers, pid)
		}
	}
	signalAll := func(sig syscall.Signal) {
		for _, pid := range renderers {
			// A renderer may have ended: Chrome keeps a spare one.
			if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
		}
	}
	signalAll(syscall.SIGSTOP)
	var slow sync.WaitGroup
	slow.Go(func() {
		select {
		case <-early:
		case <-time.After(2 * time.Second):
		}
		signalAll(syscall.SIGCONT)
	})
	_, _, err := s.activateAwake(within(t))
	slow.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

// A tab that is opened by its URL navigates only after its renderer has applied the
// overrides, however long that takes.
func TestOverridesReachASlowTab(t *testing.T) {
	r, m := newRig(t), newMirror(t)
	dir, doc := m.liveCopy(t, r)
	doc.TabsByURL = true
	s, err := r.Starter.load(within(t), dir, doc, Options{RestoreTabs: true})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(s.b)
	early := make(chan struct{})
	m.mu.Lock()
	m.sees = func(r *http.Request) {
		if r.URL.Path == "/page" {
			close(early)
		}
	}
	m.mu.Unlock()
	s.slowly(t, early)
	for who, report := range m.reports(t, "page", "frame", "worker.js", "shared.js") {
		checkReport(t, who, report)
	}
}
