package access

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// What is open with a key ends with it, and nothing is remembered of what has ended.
func TestConnectionsEndWithTheirKey(t *testing.T) {
	keys := newKeys(t)
	made, _, err := keys.CreateKey(t.Context(), admin, "ci", "alice", false, []Right{RightUse})
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.Caller(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	left, leave, err := keys.While(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if left.Err() == nil || OrKeyDeleted(left, context.Canceled) != context.Canceled {
		t.Errorf("a call that is over: %v", context.Cause(left))
	}
	open, leave, err := keys.While(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if err := keys.DeleteKey(t.Context(), admin, made.ID); err != nil {
		t.Fatal(err)
	}
	<-open.Done()
	if err := OrKeyDeleted(open, open.Err()); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a call of a deleted key: %v", err)
	}
	if _, _, err := keys.While(t.Context(), c); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("a call after the deletion: %v", err)
	}
	if n := len(keys.connections.open); n != 0 {
		t.Errorf("%d keys have connections", n)
	}
}
