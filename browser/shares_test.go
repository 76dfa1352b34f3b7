package browser

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/fair"
)

// hog is a Chrome that uses two processors whenever it is asked.
type hog struct {
	mu       sync.Mutex
	now      time.Time
	used     time.Duration
	yielding chan bool
}

func (h *hog) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hog) UsedCPU() (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(10 * time.Second)
	h.used += 20 * time.Second
	return h.used, true
}

func (h *hog) Busy(bool)     {}
func (h *hog) Yield(on bool) { h.yielding <- on }

// calm is a Chrome that does nothing.
type calm struct{}

func (calm) UsedCPU() (time.Duration, bool) { return 0, true }
func (calm) Busy(bool)                      {}
func (calm) Yield(bool)                     {}

// A Chrome is measured while its session lives, counts as its first owner's, and leaves when
// it ends.
func TestUsageOfProcessors(t *testing.T) {
	chrome := &hog{now: time.Unix(1, 0), yielding: make(chan bool, 10)}
	shares := fair.New(2, chrome.clock)
	shares.Join("ann", calm{})
	u, _, _ := newTestUsage(Limits{})
	life, end := context.WithCancel(t.Context())
	u.join(life, shares, "", chrome)
	if u.member.Load() != nil {
		t.Error("a spare has joined")
	}
	u.join(life, shares, "eve", chrome)
	u.join(life, shares, "ann", chrome)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		u.watch(life, nil, func() bool { return true }, func(Reached) {})
	}()
	if on := <-chrome.yielding; !on || !shares.Yields("eve") || shares.Yields("ann") {
		t.Error("the busy Chrome's owner does not yield")
	}
	end()
	<-watched
}
