package session

import (
	"io"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// An upload that is under way when its session ends is cancelled. It leaves nothing in
// the parked Chrome.
func TestEndOfSessionCancelsUpload(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	body, upload := io.Pipe()
	put := make(chan error, 1)
	go func() {
		err := r.PutFile(t.Context(), alice, id, "late.txt", body)
		_ = body.Close() // the body is not read to its end, and a write must not wait for that
		put <- err
	}()
	if _, err := upload.Write([]byte("the first half")); err != nil {
		t.Fatal(err)
	}
	r.end(alice, id, request.End{Mode: save.Memory})
	// Bytes that are being read may still arrive. The next read finds the session ended.
	_, _ = upload.Write([]byte("the second"))
	_ = upload.Close()
	wantCode(t, <-put, fault.SessionEnding)
	next := r.create(alice, func(c *request.Create) { c.FromSession = id })
	files, err := r.ListFiles(t.Context(), alice, next.ID)
	if err != nil || len(files) != 0 {
		t.Errorf("the next session has files %v, %v", files, err)
	}
}
