// Package view shows the tabs of a running browser to a person and passes the person's
// input on to the tab that is shown.
//
// [Serve] speaks a small protocol with the viewer's page, so that no CDP reaches it. The
// daemon sends pictures as binary messages (see frameHeader) and the state of the tabs as JSON
// ([State]). The page sends commands as JSON ([Command]). Pictures come from CDP's
// screencast (Page.startScreencast), which sends one only when the tab has painted.
package view

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
)

// Conn is one viewer's connection, message by message. Its methods may be called at the
// same time, each by one goroutine.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, text []byte) error
	WriteBinary(ctx context.Context, data []byte) error
}

// Browser is the browser that is shown. It is the daemon's own CDP connection, of this
// viewer alone.
type Browser interface {
	cdp.Session
	Session(id target.SessionID) cdp.Session
	// Post sends a command to a session of the connection and does not wait for the answer.
	// Commands reach Chrome in the order of the calls.
	Post(ctx context.Context, session target.SessionID, method string, params any) error
	// Tabs lists the open tabs, the newest last, without those that a session may not show.
	Tabs(ctx context.Context) ([]*target.Info, error)
	// Front returns the ID of the tab in front. It is called while a tab is open.
	Front(ctx context.Context) (target.ID, error)
	// MayShow reports whether a tab is at an address that a session may show.
	MayShow(id target.ID) bool
	// AllowedURL reports whether a session may open an address.
	AllowedURL(url string) bool
	// OpenTab opens a blank tab in front.
	OpenTab(ctx context.Context) error
	// Now returns the current time.
	Now() time.Time
	// TabsChanged returns a channel with an event for each tab that opened, closed or
	// navigated. stop releases it.
	TabsChanged() (changed <-chan mux.Event, stop func())
}

// Viewer describes one viewer of a session.
type Viewer struct {
	// Control says that the viewer's input is passed on. Other input is ignored.
	Control bool
	// Session and User are shown beside the picture.
	Session, User string
	// Viewers returns how many viewers the session has, and ViewersChanged receives a value
	// after that number has changed.
	Viewers        func() int
	ViewersChanged <-chan struct{}
}

// Serve shows the browser's tabs on conn until the viewer disconnects or ctx ends. It
// returns the error of the browser, if that is why it ended.
func Serve(ctx context.Context, conn Conn, b Browser, v Viewer) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{conn: conn, browser: b, viewer: v, commands: make(chan Command, queuedCommands), unsent: make(chan message, queuedMessages)}
	var both sync.WaitGroup
	both.Go(func() { defer cancel(); s.read(ctx) })
	both.Go(func() { defer cancel(); s.write(ctx) })
	err := s.run(ctx)
	cancel()
	both.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return fault.Wrap(err, fault.BrowserFailed, "view.serve", "the tab could not be shown")
}

// queuedCommands is how many commands of a viewer may wait for Chrome. The reader then
// waits, so that the viewer's connection slows down.
const queuedCommands = 64

// queuedMessages is how many messages may wait for the viewer's connection: the pictures
// under way, and some states. Commands are carried out meanwhile.
const queuedMessages = maxUndrawn + 8

// tick is the time after which a held picture is acknowledged, and between two readings of
// the tabs while the shown one paints: the shell reports no changes of titles.
const tick = 300 * time.Millisecond

// message is one message for the viewer.
type message struct {
	data   []byte
	binary bool
}

// server serves one viewer. Only run uses its fields, except for the channels.
type server struct {
	conn     Conn
	browser  Browser
	viewer   Viewer
	commands chan Command
	unsent   chan message

	tabs    []*target.Info
	shown   *screencast // nil while no tab is shown
	front   bool        // the next update looks for the tab in front
	last    []byte      // the state that was sent last
	painted bool        // the tab painted since the tabs were read
	quality quality     // of the pictures, for this viewer's connection
}

// read passes the viewer's commands to run. A message that is no command ends the
// connection: the page never sends one.
func (s *server) read(ctx context.Context) {
	for {
		msg, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		var c Command
		if json.Unmarshal(msg, &c) != nil || c.check() != nil {
			return
		}
		select {
		case s.commands <- c:
		case <-ctx.Done():
			return
		}
	}
}

// write sends the messages, until the connection fails.
func (s *server) write(ctx context.Context) {
	for {
		select {
		case m := <-s.unsent:
			send := s.conn.Write
			if m.binary {
				send = s.conn.WriteBinary
			}
			if send(ctx, m.data) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// send queues a message for the viewer.
func (s *server) send(ctx context.Context, m message) error {
	select {
	case s.unsent <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) run(ctx context.Context) error {
	changed, stop := s.browser.TabsChanged()
	defer stop()
	defer func() { s.shown.stop(ctx) }()
	s.front = true
	if err := s.update(ctx); err != nil {
		return err
	}
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
			if err = s.shown.tick(ctx); s.painted && err == nil {
				err = s.update(ctx)
			}
		case _, ok := <-changed:
			if !ok {
				return nil // Chrome has ended
			}
			err = s.update(ctx)
		case <-s.viewer.ViewersChanged:
			err = s.sendState(ctx)
		case c := <-s.commands:
			err = s.handle(ctx, c)
		case e, ok := <-s.shown.pictures():
			switch {
			case !ok: // the tab was closed, or Chrome dropped the session
				s.shown, s.front = nil, true
				err = s.update(ctx)
			case e.dialog != nil:
				err = s.sendJSON(ctx, e.dialog)
			case e.hidden:
				s.front = true
				err = s.update(ctx)
			default:
				s.painted = true
				var p *picture
				if p, err = s.shown.next(ctx, e.frame); p != nil && err == nil {
					err = s.sendPicture(ctx, p)
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// update reads the tabs, chooses the one to show and sends the state.
func (s *server) update(ctx context.Context) error {
	before := s.tabs
	s.painted = false
	tabs, err := s.browser.Tabs(ctx)
	if err != nil {
		return err
	}
	s.tabs = tabs
	show := target.ID("")
	if s.shown != nil {
		show = s.shown.tab
	}
	switch opened := openedSince(before, tabs); {
	case before != nil && opened != "": // Chrome brings a new tab to the front
		show = opened
	case len(tabs) > 0 && (s.front || !contains(tabs, show)):
		if show, err = s.browser.Front(ctx); err != nil {
			return err
		}
	}
	s.front = false
	if err := s.show(ctx, show); err != nil {
		return err
	}
	return s.sendState(ctx)
}

// openedSince returns the newest tab that was not there before, or "".
func openedSince(before, now []*target.Info) target.ID {
	if len(now) == 0 || contains(before, now[len(now)-1].TargetID) {
		return ""
	}
	return now[len(now)-1].TargetID
}

func contains(tabs []*target.Info, id target.ID) bool {
	for _, t := range tabs {
		if t.TargetID == id {
			return true
		}
	}
	return false
}

// show makes a tab the one that is shown.
func (s *server) show(ctx context.Context, id target.ID) error {
	if s.shown != nil && s.shown.tab == id {
		if url := s.url(id); url != s.shown.url {
			s.shown.url = url
			return s.shown.start(ctx) // a page in another process may send no pictures otherwise
		}
		return nil
	}
	s.shown.stop(ctx)
	s.shown = nil
	if id == "" || !contains(s.tabs, id) {
		return nil
	}
	cast, err := startScreencast(ctx, s.browser, id, s.viewer.Control, &s.quality)
	if err != nil {
		return nil // the tab was closed; the next event of TabsChanged updates the state
	}
	cast.url = s.url(id)
	s.shown = cast
	return nil
}

// url returns the address of an open tab.
func (s *server) url(id target.ID) string {
	for _, t := range s.tabs {
		if t.TargetID == id {
			return t.URL
		}
	}
	return ""
}
