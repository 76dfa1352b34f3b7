package api

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/stasisd/stasis/budget"
)

const (
	// chunkSize is how many bytes of an answer are written at a time, so that progress can be
	// measured.
	chunkSize = 64 << 10
	// countedAbove is the length above which the budget counts a write.
	countedAbove = chunkSize
)

// pacedWriter writes to a client that must keep up a [pace]. The daemon's budget counts the
// large writes that wait for a slow client.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController // of ResponseWriter
	budget  *budget.Budget
	pace    pace
	owner   string // ID of the caller's key; "" before it is known

	mu      sync.Mutex
	counted bool // the budget counts the current write
	cut     bool // all further writes fail
}

var errTooSlow = errors.New("the client read too slowly, and the memory for waiting answers is used up")

// Unwrap is for [http.ResponseController].
func (a *pacedWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write writes p, piece by piece.
func (a *pacedWriter) Write(p []byte) (sent int, err error) {
	if len(p) > countedAbove {
		held := a.budget.Open(a.owner, a.cutOff)
		a.count(true)
		defer func() {
			a.count(false)
			held.Close()
		}()
		if !held.Take(cap(p)) {
			return 0, errTooSlow
		}
	}
	for {
		n, err := a.withDeadline(func() (int, error) { return a.ResponseWriter.Write(p[:min(len(p), chunkSize)]) })
		sent += n
		p = p[n:]
		if err != nil || len(p) == 0 {
			return sent, err
		}
	}
}

// FlushError flushes what was written.
func (a *pacedWriter) FlushError() error {
	_, err := a.withDeadline(func() (int, error) { return 0, a.control.Flush() })
	return err
}

// withDeadline calls send with the deadline that the client has left.
func (a *pacedWriter) withDeadline(send func() (int, error)) (int, error) {
	since := a.pace.now()
	if !a.arm(a.pace.deadline()) {
		return 0, errTooSlow
	}
	n, err := send()
	a.pace.moved(since, n)
	return n, err
}

// arm sets the deadline of writes. It returns false if the answer was cut off. The
// ResponseWriters of tests support no deadlines; that error is ignored.
func (a *pacedWriter) arm(at time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.cut {
		_ = a.control.SetWriteDeadline(at)
	}
	return !a.cut
}

func (a *pacedWriter) count(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted = on
}

// cutOff makes the current write and all later ones fail. The client gets an incomplete
// answer, and its connection ends. The budget may call it when the connection already
// serves another request; then it does nothing.
func (a *pacedWriter) cutOff() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.counted {
		return
	}
	a.cut = true
	_ = a.control.SetWriteDeadline(time.Unix(1, 0))
}
