package api

import "time"

const (
	// defaultPatience is how long a client may keep a body or an answer waiting.
	defaultPatience = time.Minute
	// slowest is the rate, in bytes per second, that a client must keep up beyond
	// that time. A link of 64 KiB/s has four times as much.
	slowest = 16 << 10
)

// pace bounds how long one body or one answer waits for its client. The client has
// some time to waste, and each byte that moves gives a little of it back. Only
// the time that the daemon waits for the client counts.
type pace struct {
	now   func() time.Time
	most  time.Duration // to waste, with none wasted
	spent time.Duration
}

// deadline is when the client has wasted all its time, if nothing moves from now on.
func (p *pace) deadline() time.Time { return p.now().Add(p.most - p.spent) }

// moved counts n bytes, and the time that was waited for them.
func (p *pace) moved(since time.Time, n int) {
	p.spent += p.now().Sub(since) - time.Duration(n)*time.Second/slowest
	p.spent = min(max(p.spent, 0), p.most)
}
