// Package pictures takes a JPEG of a session's front tab after each navigation, and
// records it as an event of the session's run. A picture that fails is skipped.
package pictures

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/session/events"
)

const (
	// delay is how long a page may paint before its picture is taken. pause is the
	// shortest time until the next picture. deadline limits how long a picture may take.
	delay    = 500 * time.Millisecond
	pause    = 2 * time.Second
	deadline = 10 * time.Second
)

// Session is the live session whose pictures are taken.
type Session struct {
	ID        string
	Navigated <-chan struct{} // receives a value after a navigation
	Done      <-chan struct{} // closed when the session is no longer live
	// View returns what to take a picture of. It does not wake a frozen Chrome.
	View func(ctx context.Context) (View, error)
}

// View is what a picture is taken of; a nil Browser means that no picture can be taken
// now.
type View struct {
	Browser Browser
	Writer  Writer // of the current run
	// Context ends when an end of the session begins, because the end does not wait for a
	// picture.
	Context context.Context
}

// Browser takes a JPEG of the front tab.
type Browser interface {
	Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error)
}

// Writer records an event of a page without waiting; see [events.Writer.Observe].
type Writer interface {
	Observe(kind string, data events.Fields)
}

// Record takes a picture after each navigation, or one after several quick ones, until
// the session ends. ctx bounds each picture.
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
		case <-s.Navigated:
		case <-s.Done:
			return
		}
		if !wait(delay) {
			return
		}
		if err := s.take(ctx); err != nil {
			log.Debug("cannot take a screenshot; trying again after the next change of the page", "session", s.ID, "error", err)
		}
		if !wait(pause) {
			return
		}
	}
}

// take records one picture, if a picture can be taken now.
func (s Session) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	view, err := s.View(ctx)
	if err != nil || view.Browser == nil {
		return nil //nolint:nilerr // no picture can be taken of the session now
	}
	defer context.AfterFunc(view.Context, cancel)()
	jpeg, url, title, err := view.Browser.Screenshot(ctx)
	if err != nil {
		return err
	}
	view.Writer.Observe(events.Screenshot, events.Fields{"url": url, "title": title, "jpeg": jpeg})
	return nil
}
