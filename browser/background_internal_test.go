package browser

import (
	"testing"
	"testing/synctest"
	"time"
)

// fakeProcess receives whether it is in the background, at each change.
type fakeProcess chan bool

func (p fakeProcess) Background(on bool) { p <- on }

// A start in the background has a small share, but not forever.
func TestBackgroundEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := make(fakeProcess, 3), time.Now()
		end := background(p)
		if !<-p || <-p {
			t.Error("a start has no small share, or keeps it")
		}
		if lasted := time.Since(began); lasted != backgroundTime {
			t.Errorf("the small share lasted %s, want %s", lasted, backgroundTime)
		}
		end()
		<-p

		background(p)()
		if !<-p || <-p {
			t.Error("a start that has ended keeps its small share")
		}
		select {
		case <-p:
			t.Error("the share is set again after the start has ended")
		case <-time.After(2 * backgroundTime):
		}
	})
}
