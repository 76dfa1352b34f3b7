package session

import (
	"io"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// An upload that is under way when its session ends is given up, and leaves
// nothing in the Chrome that is parked.
func TestACallEndsWithItsSession(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	body, upload := io.Pipe()
	put := make(chan error, 1)
	go func() {
		err := r.PutFile(t.Context(), alice, id, "late.txt", body)
		_ = body.Close() // nobody reads on: a write must not wait for it
		put <- err
	}()
	if _, err := upload.Write([]byte("the first half")); err != nil {
		t.Fatal(err)
	}
	r.end(alice, id, request.End{Mode: save.Memory})
	// What is being read may arrive still; the next read finds the session ended.
	_, _ = upload.Write([]byte("the second"))
	_ = upload.Close()
	wantCode(t, <-put, fault.SessionEnding)
	next := r.create(alice, func(c *request.Create) { c.FromSession = id })
	files, err := r.ListFiles(t.Context(), alice, next.ID)
	if err != nil || len(files) != 0 {
		t.Errorf("the next session has %v, %v", files, err)
	}
}
