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
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/fault"
)

// Conn is one viewer's connection, message by message. Its methods may be called at the
// same time. Of Read, and of Write and WriteBinary together, one call runs at a time. A write
// fails if the viewer does not read. Only the first Close has an effect.
type Conn interface {
	mux.Conn
	mux.Metered
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
	// ClientAnswers reports whether a CDP client may answer the dialogs of a tab, and whether
	// one answers its file choosers.
	ClientAnswers(id target.ID) (dialogs, files bool)
	// FilePath returns the path of one of the session's files.
	FilePath(name string) (string, error)
	// OpenTab opens a blank tab in front.
	OpenTab(ctx context.Context) error
	// Now returns the current time.
	Now() time.Time
	// Events returns the events with these methods of all sessions of the connection; see
	// [mux.Driver.Events].
	Events(methods ...string) (events <-chan mux.Event, stop func())
	// Account opens an account of the daemon's memory for clients; see [mux.Driver.Account].
	Account(evict func()) *budget.Account
}

// Viewer describes one viewer of a session.
type Viewer struct {
	// Control says that the viewer's input is passed on. Other input is ignored.
	Control bool
	// MayShare and MaySave say that the page may make shared links, and save the session.
	MayShare, MaySave bool
	// LinkExpires is when the shared link ends that the viewer came through; zero: none.
	LinkExpires time.Time
	// Session and User are shown beside the picture.
	Session, User string
	// Clients returns how many CDP clients the session has.
	Clients func() int
	// Viewers returns how many viewers the session has, and ViewersChanged receives a value
	// after that number has changed.
	Viewers        func() int
	ViewersChanged <-chan struct{}
}

// Serve shows the browser's tabs on conn until the viewer disconnects or ctx ends. It
// returns the error of the browser, if that is why it ended.
func Serve(ctx context.Context, conn Conn, b Browser, v Viewer) error {
	ctx, cancel := context.WithCancel(ctx)
	account := b.Account(func() {
		_ = conn.Close(mux.CloseTooSlow, tooMuchHeld) // the viewer may have disconnected already
		cancel()
	})
	defer account.Close()
	conn.Meter(account.Take)
	s := &server{conn: conn, browser: b, viewer: v, account: account, kept: map[target.ID]*screencast{}, questions: map[messageKind]int64{}, asked: map[messageKind]int64{}, commands: newCommandQueue(account), unsent: newOutbox(account), replies: make(chan reply)}
	var both sync.WaitGroup
	both.Go(func() { defer cancel(); s.read(ctx) })
	both.Go(func() { defer cancel(); s.write(ctx) })
	err := s.run(ctx)
	cancel()
	both.Wait()
	s.work.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return fault.Wrap(err, fault.BrowserFailed, "view.serve", "the tab could not be shown")
}

// tooMuchHeld is the reason of CloseTooSlow.
const tooMuchHeld = "the daemon's memory for clients is full, and this viewer holds the most"

// tick is the time after which a held picture is acknowledged, and between two readings of
// the tabs while the shown one paints: the shell reports no changes of titles.
const tick = 300 * time.Millisecond

// server serves one viewer. Only run uses its fields, except for commands, unsent
// and account.
type server struct {
	conn     Conn
	browser  Browser
	viewer   Viewer
	account  *budget.Account
	commands *commandQueue
	unsent   *outbox

	tabs      []*target.Info
	shown     *screencast               // nil while no tab is shown
	kept      map[target.ID]*screencast // of tabs with an open dialog that are not shown
	questions map[messageKind]int64     // the numbers of the newest questions, by kind
	asked     map[messageKind]int64     // the numbers of those that the viewer's page shows; 0: none

	looking bool               // the frames of a tab are asked for a picker
	holding context.CancelFunc // ends what later commands wait for; nil: they do not wait
	held    *screencast        // the tab that this is about
	soon    *time.Timer        // for the first look after an input
	replies chan reply
	work    sync.WaitGroup // asks frames
	front   bool           // the next update looks for the tab in front
	last    []byte         // the state that was sent last
	painted bool           // the tab painted since the tabs were read
	quality quality        // of the pictures, for this viewer's connection
}

// read passes the viewer's commands to run. It drops commands that need control if the
// viewer has none. A message that is no command ends the connection: the page never sends
// one.
func (s *server) read(ctx context.Context) {
	for {
		msg, err := s.conn.Read(ctx)
		if err != nil {
			return
		}
		c, err := decode(msg)
		s.account.Release(cap(msg))
		if err != nil {
			return
		}
		if c.needsControl() && !s.viewer.Control {
			continue
		}
		if s.commands.put(ctx, c) != nil {
			return
		}
	}
}

// write sends the messages, until the connection fails.
func (s *server) write(ctx context.Context) {
	for {
		m, ok := s.unsent.take(ctx)
		if !ok {
			return
		}
		send := s.conn.Write
		if m.kind == pictureMessage {
			send = s.conn.WriteBinary
		}
		err := send(ctx, m.data)
		s.unsent.wrote(m)
		if err != nil {
			return
		}
	}
}

func (s *server) run(ctx context.Context) error {
	events, stop := s.browser.Events(methods()...)
	defer stop()
	s.front = true
	if err := s.update(ctx); err != nil {
		return err
	}
	s.soon = time.NewTimer(lookFor)
	defer s.soon.Stop()
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		commands := s.commands.queue
		if s.holding != nil {
			commands = nil
		}
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
			if s.shown.usedSince(lookFor) || s.shown.unseen() {
				s.look(ctx)
			}
			switch err = s.shown.tick(ctx); {
			case err == nil && s.painted:
				err = s.update(ctx)
			case err == nil:
				err = s.sendState()
			}
		case <-s.soon.C:
			s.look(ctx)
		case r := <-s.replies:
			err = s.replied(r)
		case e, ok := <-events:
			if !ok {
				return nil // Chrome has ended
			}
			err = s.receive(ctx, e)
		case <-s.viewer.ViewersChanged:
			err = s.sendState()
		case c := <-commands:
			s.commands.taken(c)
			err = s.handle(ctx, c)
		}
		if err != nil && !isDetached(err) {
			return err
		}
	}
}
