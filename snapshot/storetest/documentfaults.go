package storetest

import (
	"errors"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// documentFaults makes every nth call of a save fail, once with a free ID and once with
// an existing document.
func documentFaults(t *testing.T, open Open, mode faultstore.Mode, every int) {
	for _, repeated := range []bool{false, true} {
		for n := 1 + int(mode)%every; ; n += every {
			calls := documentWithFault(t, open(t), n, mode, repeated)
			if n <= calls {
				continue
			}
			if calls < 6 { // none failed
				t.Errorf("a save made only %d calls", calls)
			}
			break
		}
	}
}

// documentWithFault makes the nth call of a save fail, and returns the number of calls.
func documentWithFault(t *testing.T, inner snapshot.Store, n int, mode faultstore.Mode, repeated bool) int {
	t.Helper()
	defer func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	}()
	store := faultstore.New(inner)
	d := documents(store)
	save(t, d, id(1), "old", true)
	if repeated {
		save(t, d, id(2), "new", false)
	}
	boom := fault.New(fault.StoreFull, "test", "planned")
	store.FailAt(n, mode, boom)
	err := d.Save(t.Context(), desk, id(2), agentDocument("new"), true)
	calls := store.Calls()
	store.FailAt(0, faultstore.Refuse, nil)

	if n > calls && err != nil || n <= calls && !errors.Is(err, error(boom)) {
		t.Fatalf("call %d of %d: %v", n, calls, err)
	}
	last := string(must[[]byte](t)(d.Load(t.Context(), desk, snapshot.LatestID)))
	_, missing := d.Load(t.Context(), desk, id(2))
	switch {
	case last == string(agentDocument("new")) && missing == nil:
	case last == string(agentDocument("old")) && err != nil && (missing == nil || fault.Is(missing, fault.SnapshotNotFound)):
	default:
		t.Fatalf("call %d: after %v latest is %s, and the new one %v", n, err, last, missing)
	}
	wantDocument(t, d, id(1), "old")
	save(t, d, id(2), "new", true) // the save can be repeated
	wantDocument(t, d, snapshot.LatestID, "new")
	wantDocument(t, d, id(2), "new")
	return calls
}
