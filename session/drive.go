package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/events"
)

// Conn is one CDP client's connection, message by message.
type Conn = mux.Conn

// Eager is a Conn that can also send without waiting; see mux.Eager.
type Eager = mux.Eager

// Metered is a Conn that counts the memory of what it reads; see mux.Metered.
type Metered = mux.Metered

// Screenshot is a JPEG of the tab in front.
type Screenshot struct {
	JPEG  []byte
	URL   string
	Title string
}

// Page is one page target, as GET …/json/list shows it.
type Page struct {
	ID    string
	Type  string
	Title string
	URL   string
}

// callDeadline bounds a navigation or screenshot.
const callDeadline = 30 * time.Second

// with lends a live session's browser to a call, of who may look or drive.
func (s *Service) with(ctx context.Context, c access.Caller, id string, p access.Permission, do func(context.Context, browsers.Chrome) error) error {
	l, err := s.running(ctx, c, id, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	return l.use(ctx, do)
}

// Navigate sends the tab in front to a URL and returns where it came to.
func (s *Service) Navigate(ctx context.Context, c access.Caller, id, url string) (at string, err error) {
	err = s.with(ctx, c, id, access.Drive, func(ctx context.Context, chrome browsers.Chrome) error {
		at, err = chrome.Navigate(ctx, url)
		return err
	})
	return at, err
}

// Screenshot takes a picture of the tab in front.
func (s *Service) Screenshot(ctx context.Context, c access.Caller, id string) (shot Screenshot, err error) {
	err = s.with(ctx, c, id, access.Look, func(ctx context.Context, chrome browsers.Chrome) error {
		shot.JPEG, shot.URL, shot.Title, err = chrome.Screenshot(ctx)
		return err
	})
	return shot, err
}

// Pages lists the open tabs.
func (s *Service) Pages(ctx context.Context, c access.Caller, id string) ([]Page, error) {
	pages := []Page{}
	err := s.with(ctx, c, id, access.Drive, func(ctx context.Context, chrome browsers.Chrome) error {
		open, err := chrome.Pages(ctx)
		for _, p := range open {
			pages = append(pages, Page{ID: p.ID, Type: "page", Title: p.Title, URL: p.URL})
		}
		return err
	})
	return pages, err
}

// BrowserVersion tells what GET …/json/version does.
func (s *Service) BrowserVersion(ctx context.Context, c access.Caller, id string) (product, protocolVersion, userAgent string, err error) {
	err = s.with(ctx, c, id, access.Drive, func(_ context.Context, chrome browsers.Chrome) error {
		product, protocolVersion, userAgent = "Chrome/"+chrome.Version(), chrome.Protocol(), chrome.UserAgent()
		return nil
	})
	return product, protocolVersion, userAgent, err
}

// MayDrive refuses a caller that may not drive a session, before its client is
// answered.
func (s *Service) MayDrive(ctx context.Context, c access.Caller, id string) error {
	_, err := s.record(ctx, c, id, access.Drive)
	return err
}

// Attach takes a place for one CDP client of a session, before it is upgraded and
// served by [Service.Connect]; see [capacity.Clients.Take].
func (s *Service) Attach(id string) (release func(), err error) { return s.clients.Take(id) }

// Connect serves one CDP client of a session until it leaves, the session ends or
// the caller's key is deleted. A paused session thaws for as long as a client is there.
func (s *Service) Connect(ctx context.Context, c access.Caller, id, targetID string, conn Conn) error {
	l, err := s.running(ctx, c, id, access.Drive)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leave, err := s.Keys.Connected(ctx, c, func() {
		_ = conn.Close(mux.CloseKeyDeleted, "key_deleted") // the client may be gone already
		cancel()
	})
	if err != nil {
		return err
	}
	defer leave()
	var door mux.Door // Chrome may be another session's by the time it is served
	var left func()
	chrome, _, giveBack, err := l.borrow(ctx)
	if err == nil {
		defer giveBack()
		err = l.ask(ctx, func() error {
			if err := l.usable(); err != nil {
				return err
			}
			chrome, door = l.chrome, l.chrome.Door()
			l.clients++
			left = l.connected()
			if l.rec.Status == profiles.StatusReady {
				l.setStatus(profiles.StatusRunning, profiles.Reason{})
			}
			return nil
		})
	}
	if err != nil {
		if fault.Is(err, fault.SessionEnding) || fault.Is(err, fault.SessionNotRunning) {
			// It came a moment too late, and hears what the others heard.
			_ = conn.Close(mux.CloseSessionEnded, "session_ended") // the error is what counts
		}
		return err
	}
	defer func() {
		// A session that has ended meanwhile has nothing to be told.
		_ = l.ask(context.WithoutCancel(ctx), func() error {
			l.clients--
			left()
			l.touch()
			if l.clients == 0 {
				select {
				case l.left <- struct{}{}:
				default: // one is there already
				}
			}
			l.settleFreeze()
			return nil
		})
	}()
	return chrome.Serve(ctx, conn, targetID, door)
}

// Pause marks a session paused: its Chrome is frozen while no client is
// attached, and the idle limit stands still.
func (s *Service) Pause(ctx context.Context, c access.Caller, id string) (answer.Acknowledged, error) {
	a := answer.Acknowledged{Success: true, Status: "paused", Message: "the session is paused"}
	l, err := s.running(ctx, c, id, access.Drive)
	if err != nil {
		return a, err
	}
	l.awaitRestart(ctx)
	already := false
	err = l.askAndWait(ctx, func(reply func(error)) {
		if err := l.usable(); err != nil {
			reply(err)
			return
		}
		if already = l.paused; already {
			l.whenPaused(reply)
			return
		}
		l.paused = true
		l.freeze(func(err error) {
			if err == nil {
				err = l.usable() // an ending has begun
			}
			if err != nil {
				l.paused = false
				reply(err)
				return
			}
			l.setStatus(profiles.StatusPaused, profiles.Reason{})
			l.writer.Record(events.Paused, nil)
			l.records.After(func() { reply(nil) })
		})
	})
	if err == nil && already {
		a.Status, a.Message = "already_paused", "the session is paused already"
	}
	s.Journal.Flush(ctx, id)
	return a, err
}
