package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
)

// pacedBody is a request's body. Reads fail if its client falls below the [pace].
type pacedBody struct {
	io.ReadCloser
	control *http.ResponseController
	pace    pace

	mu       sync.Mutex
	cut      bool // all further reads fail
	complete bool // the body is in memory; the budget no longer counts it
}

// limitBody limits how long a request's body may take to arrive, until it is read or the
// request ends. This includes a body that no handler reads: the server reads the rest of it
// before it sends the answer.
func (s *Server) limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	a := &pacedBody{ReadCloser: r.Body, control: http.NewResponseController(w), pace: pace{now: s.now, most: s.patience}}
	a.arm(a.pace.deadline())
	r.Body = a
}

// arm sets the deadline of the next read. It returns false if the body was cut off. The
// ResponseWriters of tests support no deadlines; that error is ignored.
func (a *pacedBody) arm(at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.cut {
		_ = a.control.SetReadDeadline(at)
	}
	return !a.cut
}

// markComplete records that the whole body is in memory.
func (a *pacedBody) markComplete() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.complete = true
}

// cutOff makes the current read and all later ones fail. The budget may call it after the
// body is in memory; then it does nothing.
func (a *pacedBody) cutOff() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.complete {
		return
	}
	a.cut = true
	_ = a.control.SetReadDeadline(time.Unix(1, 0))
}

// errCutOff is the error of a body that was cut off because the memory for bodies is used
// up.
var errCutOff = fault.New(fault.TooManyRequests, "api.body", "too many large bodies arrive at once; try again later")

func (a *pacedBody) Read(p []byte) (int, error) {
	since := a.pace.now()
	if !a.arm(a.pace.deadline()) {
		return 0, errCutOff
	}
	n, err := a.ReadCloser.Read(p)
	a.pace.moved(since, n)
	if err != nil && err != io.EOF && a.isCut() { //nolint:errorlint // a body returns this very value
		return n, errCutOff
	}
	if err == io.EOF { //nolint:errorlint // a body returns this very value
		// From here on the server itself reads from the connection, to notice when the
		// client disconnects. That read must have no deadline. After other errors the
		// server reads the rest of the body in the time that is left.
		a.arm(time.Time{})
	}
	return n, err
}

func (a *pacedBody) isCut() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cut
}

// bodyError returns the error for a body that could not be read; nil if err is nil.
func bodyError(op string, err error) error {
	switch {
	case errors.Is(err, errCutOff):
		return errCutOff
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.Wrap(err, fault.InvalidRequest, op, "the body arrived too slowly; --client-patience sets the limit")
	}
	return fault.Wrap(err, fault.InvalidRequest, op, "the body could not be read")
}

// readAll reads a body into memory; the budget counts the bytes as they arrive. It reads at
// most most+1 bytes, so that the caller can recognise a body that is too large.
func (d *bodyDecoder) readAll(c *call, body io.Reader, most int64) ([]byte, error) {
	held := d.budget.Open(c.caller.KeyID, c.cutOff)
	defer held.Close()
	if c.body != nil {
		defer c.body.markComplete()
	}
	data, body := []byte{}, io.LimitReader(body, most+1)
	for {
		if len(data) == cap(data) {
			grown := max(4<<10, 2*cap(data))
			if !held.Take(grown - cap(data)) {
				return nil, errCutOff
			}
			data = append(make([]byte, 0, grown), data...)
		}
		n, err := body.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
