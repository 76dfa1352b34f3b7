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

// arriving is a request's body. Its client must keep up a [pace], or its reads fail.
type arriving struct {
	io.ReadCloser
	control *http.ResponseController
	pace    pace

	mu    sync.Mutex
	cut   bool // no more is read
	whole bool // it is in memory, and the budget counts it no more
}

// bound bounds the body of a request, until it is read or the request is over. A body
// that no handler reads is bounded too: the server reads what is left of it before
// it sends the answer.
func (s *Server) bound(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	a := &arriving{ReadCloser: r.Body, control: http.NewResponseController(w), pace: pace{now: s.now, most: s.patience}}
	a.arm(a.pace.deadline())
	r.Body = a
}

// arm sets when the next read fails; it is false when the body was cut off.
// Writers of tests know no deadlines; then there is none.
func (a *arriving) arm(at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.cut {
		_ = a.control.SetReadDeadline(at)
	}
	return !a.cut
}

// read notes that the body is in memory.
func (a *arriving) read() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.whole = true
}

// cutOff makes a read that is under way fail, and those after it. The budget may call
// it late, when the body is in memory: then it does nothing.
func (a *arriving) cutOff() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.whole {
		return
	}
	a.cut = true
	_ = a.control.SetReadDeadline(time.Unix(1, 0))
}

// errCutOff ends a body that there is no room for.
var errCutOff = fault.New(fault.TooManyRequests, "api.body", "too many large bodies arrive at once; try again later")

func (a *arriving) Read(p []byte) (int, error) {
	since := a.pace.now()
	if !a.arm(a.pace.deadline()) {
		return 0, errCutOff
	}
	n, err := a.ReadCloser.Read(p)
	a.pace.moved(since, n)
	if err != nil && err != io.EOF && a.isCut() { //nolint:errorlint // of a body it is that very value
		return n, errCutOff
	}
	if err == io.EOF { //nolint:errorlint // of a body it is that very value
		// The server looks for the client's leaving now, which must not fail. After
		// other errors it reads what is left of the body, in the time that is left.
		a.arm(time.Time{})
	}
	return n, err
}

func (a *arriving) isCut() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cut
}

// unread is the error of a body that could not be read; nil for nil.
func unread(op string, err error) error {
	switch {
	case errors.Is(err, errCutOff):
		return errCutOff
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault.Wrap(err, fault.InvalidRequest, op, "the body came too slowly; see --client-patience")
	}
	return fault.Wrap(err, fault.InvalidRequest, op, "the body could not be read")
}

// readAll reads a body into memory, which the budget counts while it arrives.
// One of more than most bytes is cut there: it gives one byte more.
func (d *bodyDecoder) readAll(c *call, body io.Reader, most int64) ([]byte, error) {
	held := d.budget.Open(c.caller.KeyID, c.cutOff)
	defer held.Close()
	if c.body != nil {
		defer c.body.read()
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
