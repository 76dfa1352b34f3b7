package browser

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeProcess records whether it is in the background.
type fakeProcess struct {
	atomic.Bool
	calls atomic.Int32
}

func (s *fakeProcess) Background(on bool) {
	s.Store(on)
	s.calls.Add(1)
}

// A start in the background has a small share, but not forever.
func TestBackgroundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p fakeProcess
		end := background(&p)
		time.Sleep(backgroundTime - time.Millisecond)
		if !p.Load() {
			t.Error("a start has an ordinary share at first")
		}
		time.Sleep(2 * time.Millisecond)
		if p.Load() {
			t.Error("a start that takes long keeps its small share")
		}
		end()

		end = background(&p)
		end()
		calls := p.calls.Load()
		if p.Load() {
			t.Error("a start that has ended keeps its small share")
		}
		time.Sleep(2 * backgroundTime)
		if p.calls.Load() != calls {
			t.Error("the share is set again after the start has ended")
		}
	})
}
