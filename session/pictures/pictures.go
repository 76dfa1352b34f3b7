// Package pictures takes a JPEG of a session's tab in front after each navigation, and
// records it as an event of the session's run. A picture that fails is left out.
package pictures

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/session/events"
)

const (
	// delay is how long a page may paint before its picture is taken, and pause the
	// time to the next one at least.
	delay    = 500 * time.Millisecond
	pause    = 2 * time.Second
	deadline = 10 * time.Second
)

// Session is the live session that pictures are taken of.
type Session struct {
	ID    string
	Moved <-chan struct{} // receives a value after a navigation
	Done  <-chan struct{} // closed when the session is no longer live
	// Look gives what a picture is taken of. It wakes nothing.
	Look func(ctx context.Context) (View, error)
}

// View is what a picture is taken of; without a Browser there is nothing to see now.
type View struct {
	Browser Browser
	Writer  Writer // of the run that is going on
	// Lent ends when an end of the session begins, which does not wait for a picture.
	Lent context.Context
}

// Browser takes a JPEG of the tab in front.
type Browser interface {
	Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error)
}

// Writer records an event of what a page did, and does not wait; see
// [events.Writer.Observe].
type Writer interface {
	Observe(kind string, data events.Fields)
}

// Record takes a picture after each navigation, or one after several that follow
// quickly, until the session ends. ctx bounds each picture.
func Record(ctx context.Context, s Session, log *slog.Logger) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	wait := func(d time.Duration) bool {
		timer.Reset(d)
		select {
		case <-timer.C:
			return true
		case <-s.Done:
			return false
		}
	}
	for {
		select {
		case <-s.Moved:
		case <-s.Done:
			return
		}
		if !wait(delay) {
			return
		}
		if err := s.take(ctx); err != nil {
			log.Debug("a picture could not be taken", "session", s.ID, "error", err)
		}
		if !wait(pause) {
			return
		}
	}
}

// take records one picture, if there is something to see.
func (s Session) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	view, err := s.Look(ctx)
	if err != nil || view.Browser == nil {
		return nil //nolint:nilerr // the session cannot be looked at now
	}
	defer context.AfterFunc(view.Lent, cancel)()
	jpeg, url, title, err := view.Browser.Screenshot(ctx)
	if err != nil {
		return err
	}
	view.Writer.Observe(events.Screenshot, events.Fields{"url": url, "title": title, "jpeg": jpeg})
	return nil
}
