package access

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Deleting a key ends its calls, and ended calls leave nothing in memory.
func TestDeletingKeyEndsItsConnections(t *testing.T) {
	keys := newKeys(t)
	made, _, err := keys.CreateKey(t.Context(), admin, KeyOptions{Name: "ci", UserID: "alice", Rights: []Right{RightUse}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.Caller(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	left, leave, err := keys.CallContext(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if left.Err() == nil || OrKeyDeleted(left, context.Canceled) != context.Canceled {
		t.Errorf("ended call: %v", context.Cause(left))
	}
	open, leave, err := keys.CallContext(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if err := keys.DeleteKey(t.Context(), admin, made.ID); err != nil {
		t.Fatal(err)
	}
	<-open.Done()
	if err := OrKeyDeleted(open, open.Err()); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("call open when its key was deleted: %v", err)
	}
	if _, _, err := keys.CallContext(t.Context(), c); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("call after the deletion: %v", err)
	}
	ended := 0
	if _, err := keys.RegisterConnection(t.Context(), c, func(error) { ended++ }); !fault.Is(err, fault.Unauthorized) || ended != 1 {
		t.Errorf("connection after the deletion: %v, ended %d times", err, ended)
	}
	if n := len(keys.connections.open); n != 0 {
		t.Errorf("%d keys still have connections", n)
	}
}

// A key that another node has deleted ends its connections here too.
func TestKeyDeletedByAnotherNode(t *testing.T) {
	keys := newKeys(t)
	made, _, err := keys.CreateKey(t.Context(), admin, KeyOptions{Name: "ci", UserID: "alice", Rights: []Right{RightUse}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := keys.Caller(t.Context(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	open, leave, err := keys.CallContext(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	keys.EndDeleted(t.Context())
	if open.Err() != nil {
		t.Errorf("the call of a key that exists ended: %v", context.Cause(open))
	}
	if err := keys.store.DeleteKey(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	keys.EndDeleted(t.Context())
	<-open.Done()
	if err := OrKeyDeleted(open, open.Err()); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("the call ended with %v", err)
	}
}
