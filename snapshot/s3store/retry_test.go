package s3store_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stasisd/stasis/snapshot/s3store"
)

// A network that swallows what begins a connection is one of the failures that
// pass. net tells it as it would tell a caller's own deadline.
func TestDialThatTakesTooLongPasses(t *testing.T) {
	_, err := (&net.Dialer{Timeout: time.Nanosecond}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if !s3store.Passes(err) {
		t.Errorf("%v is not tried again", err)
	}
}
