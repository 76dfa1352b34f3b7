package api

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/stasisd/stasis/budget"
)

const (
	// piece is how many bytes of an answer are sent at a time, so that it can be
	// seen whether they move.
	piece = 64 << 10
	// weighed is the length over which the budget counts what is being sent.
	weighed = piece
)

// pacedWriter sends to a client that must keep up a [pace]. What waits for a slow one is
// counted in the daemon's budget.
type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController // of ResponseWriter
	budget  *budget.Budget
	pace    pace
	owner   string // ID of the caller's key; "" before it is known

	mu      sync.Mutex
	counted bool // the budget counts what is being sent
	cut     bool // nothing is sent any more
}

var errTooSlow = errors.New("the client read too slowly, and there was no room for what waited")

// Unwrap is for [http.ResponseController].
func (a *pacedWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Write sends p, piece by piece.
func (a *pacedWriter) Write(p []byte) (sent int, err error) {
	if len(p) > weighed {
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
		n, err := a.timed(func() (int, error) { return a.ResponseWriter.Write(p[:min(len(p), piece)]) })
		sent += n
		p = p[n:]
		if err != nil || len(p) == 0 {
			return sent, err
		}
	}
}

// FlushError sends what was written.
func (a *pacedWriter) FlushError() error {
	_, err := a.timed(func() (int, error) { return 0, a.control.Flush() })
	return err
}

// timed sends something in the time that the client has left.
func (a *pacedWriter) timed(send func() (int, error)) (int, error) {
	since := a.pace.now()
	if !a.arm(a.pace.deadline()) {
		return 0, errTooSlow
	}
	n, err := send()
	a.pace.moved(since, n)
	return n, err
}

// arm sets when sending fails; it is false when the answer was cut off.
// Writers of tests know no deadlines; then there is none.
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

// cutOff makes what is being sent fail, and all that comes after it: the client gets
// no whole answer, and its connection ends. The budget may call it late, when the
// connection already serves another request: then it does nothing.
func (a *pacedWriter) cutOff() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.counted {
		return
	}
	a.cut = true
	_ = a.control.SetWriteDeadline(time.Unix(1, 0))
}
