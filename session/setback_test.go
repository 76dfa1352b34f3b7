package session

import (
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/state"
)

// After a crash the report says that times prove nothing if the clock was set back since
// a checkpoint or a resume. Here the cookie database cannot be read, which is a doubt
// only if it may be the newer copy. The tabs are as Chrome left them.
func TestCrashAfterTheClockWasSetBack(t *testing.T) {
	for name, resumed := range map[string]bool{"a checkpoint": false, "a resume": true} {
		r := newRig(t, nil)
		id := r.create(alice, onCrash).ID
		r.checkpoint(id, plain)
		if resumed {
			r.end(alice, id, filesystem)
			r.resumed(alice, id)
		}
		r.writeUnreadable(r.clock.add(-2*time.Hour), "Cookies", "Sessions/Session_1")
		r.clock.add(time.Minute)
		r.crashChrome(id)
		doc := r.browsers.last().restored
		if got := doubts(doc); !slices.Contains(got, state.ComponentCookies) || !slices.Contains(got, state.ComponentTabs) || !doc.TabsOnDisk {
			t.Errorf("%s: doubts %q, tabs on disk: %t", name, got, doc.TabsOnDisk)
		}
	}
}

// If the clock was set back before the resume, what Chrome has written since still
// counts.
func TestResumedAfterTheClockWasSetBack(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, onCrash).ID
	r.end(alice, id, filesystem)
	r.clock.add(-2 * time.Hour)
	r.resumed(alice, id)
	r.writeUnreadable(r.clock.add(time.Minute), "Sessions/Session_1")
	r.clock.add(time.Minute)
	r.crashChrome(id)
	if doc := r.browsers.last().restored; !doc.TabsOnDisk || len(doc.Doubts) > 0 {
		t.Errorf("tabs on disk: %t, doubts %q", doc.TabsOnDisk, doubts(doc))
	}
}
