package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/browsers"
)

// memoryAge is the age from which a measurement of a session's memory is repeated when
// somebody asks for it.
const memoryAge = 30 * time.Second

// measured is the last measurement of a session's memory. The session's goroutine owns it.
type measured struct {
	of    browsers.Chrome // nil: nothing was measured
	bytes int64
	at    time.Time
	ended chan struct{} // closed when the measurement that is under way has ended; nil: none is
}

// Measure measures the memory of the session's Chrome on another goroutine, unless that was
// done within memoryAge. The channel is closed when there is nothing to wait for. A paused
// session stays frozen. The kernel walks the pages of all processes, so only one session is
// measured at a time.
func (l *liveSession) Measure(ctx context.Context) (ended <-chan struct{}) {
	err := l.ask(ctx, func() error {
		m := &l.memory
		if err := l.usable(); err != nil {
			return err
		}
		if m.ended == nil && (m.of != l.chrome || l.svc.deps.Now().Sub(m.at) >= memoryAge) {
			m.ended = make(chan struct{})
			chrome, done := l.chrome, m.ended
			l.svc.work.Go(func() { l.measure(chrome, done) })
		}
		ended = m.ended
		return nil
	})
	if err != nil || ended == nil {
		nothing := make(chan struct{})
		close(nothing)
		return nothing
	}
	return ended
}

// measure measures a Chrome when it is the session's turn. It closes done.
func (l *liveSession) measure(chrome browsers.Chrome, done chan struct{}) {
	defer close(done)
	select {
	case l.svc.measuring <- struct{}{}:
	case <-l.done:
		return
	}
	bytes := chrome.Memory()
	<-l.svc.measuring
	// A session that has ended meanwhile is not described any more.
	_ = l.ask(l.ctx, func() error {
		l.memory = measured{of: chrome, bytes: bytes, at: l.svc.deps.Now()}
		return nil
	})
}

// usage returns what a session with this Chrome and these numbers uses now. The memory of
// another Chrome, which this one has replaced, does not count.
func (m measured) usage(of browsers.Chrome, clients, viewers int) *answer.Usage {
	u := &answer.Usage{Clients: clients, Viewers: viewers}
	if m.of == of && m.bytes > 0 {
		at := m.at.UTC()
		u.MemoryBytes, u.MeasuredAt = m.bytes, &at
	}
	return u
}
