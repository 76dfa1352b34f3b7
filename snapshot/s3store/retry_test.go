package s3store_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stasisd/stasis/snapshot/s3store"
)

// A dial timeout is a temporary failure. net reports it like a deadline of the caller.
func TestDialTimeoutIsTemporary(t *testing.T) {
	_, err := (&net.Dialer{Timeout: time.Nanosecond}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if !s3store.IsTemporary(err) {
		t.Errorf("%v is not tried again", err)
	}
}
