package api

import "time"

const (
	// defaultPatience is how long a client may delay a body or an answer by default.
	defaultPatience = time.Minute
	// minRate is the rate, in bytes per second, that a client must keep up once that time
	// is used up. A link of 64 KiB/s has four times as much.
	minRate = 16 << 10
)

// pace limits how long one body or one answer waits for its client. The client has some
// time to spend, and each byte that it moves gives a little of it back. Only the time that
// the daemon waits for the client counts.
type pace struct {
	now   func() time.Time
	most  time.Duration // limit of spent
	spent time.Duration
}

// deadline returns when the client has spent all its time if no byte moves from now on.
func (p *pace) deadline() time.Time { return p.now().Add(p.most - p.spent) }

// moved counts n bytes and the time spent waiting for them.
func (p *pace) moved(since time.Time, n int) {
	p.spent += p.now().Sub(since) - time.Duration(n)*time.Second/minRate
	p.spent = min(max(p.spent, 0), p.most)
}
