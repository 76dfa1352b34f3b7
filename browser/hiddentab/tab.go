// Package hiddentab is a hidden tab whose requests the daemon answers itself. With it the
// storage of an origin can be read and written without a request to the site.
//
// It talks to targets through raw sessions and enables no CDP domain that a page of the
// environment could notice.
package hiddentab

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"
)

// Conn is the daemon's own CDP connection to one Chrome: a session of the browser
// target, and one for each target that it is attached to.
type Conn interface {
	cdp.Session
	Session(id target.SessionID) cdp.Session
	// OpenHidden opens a blank tab that does not belong to the environment.
	OpenHidden(ctx context.Context) (target.ID, error)
}

// closeDeadline bounds the cleanup after a use, so that a Chrome that no longer answers
// does not block.
const closeDeadline = 2 * time.Second

// Tab is a hidden tab. The daemon answers its every request with an empty page. It
// bypasses service workers, because one of the profile would answer instead.
type Tab struct {
	conn    Conn
	id      target.ID
	session cdp.Session
	stop    context.CancelFunc
	done    sync.WaitGroup
	body    atomic.Pointer[string] // of the tab's own document; its frames are empty
}

// Open opens a tab. The caller must close it.
func Open(ctx context.Context, conn Conn) (*Tab, error) {
	t, err := openBlank(ctx, conn)
	if err != nil {
		return nil, err
	}
	t.answer(ctx)
	if _, err := cdp.Call(ctx, t.session, fetch.Enable, fetch.EnableParams{}); err != nil {
		t.Close(ctx)
		return nil, err
	}
	return t, nil
}

// openBlank opens a hidden tab that bypasses service workers.
func openBlank(ctx context.Context, conn Conn) (*Tab, error) {
	id, err := conn.OpenHidden(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tab{conn: conn, id: id, stop: func() {}}
	if t.session, _, err = Attach(ctx, conn, id); err != nil {
		t.Close(ctx)
		return nil, err
	}
	session := t.session
	// Chrome applies the bypass only if the Network domain is enabled.
	if _, err := cdp.Call(ctx, session, network.Enable, network.EnableParams{}); err != nil {
		t.Close(ctx)
		return nil, err
	}
	if _, err := cdp.Call(ctx, session, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true}); err != nil {
		t.Close(ctx)
		return nil, err
	}
	return t, nil
}

// answer answers every request of the tab until Close.
func (t *Tab) answer(ctx context.Context) {
	ctx, t.stop = context.WithCancel(ctx)
	requests := cdp.Events(ctx, t.session, fetch.RequestPaused)
	t.done.Go(func() {
		for paused, err := range requests {
			if err != nil {
				return
			}
			body := "<!doctype html>"
			if inner := t.body.Load(); inner != nil && paused.FrameID == cdp.FrameID(t.id) {
				body += *inner
			}
			// A failed answer shows as a failed navigation.
			_, _ = cdp.Call(ctx, t.session, fetch.FulfillRequest, fetch.FulfillRequestParams{
				RequestID: paused.RequestID, ResponseCode: 200,
				ResponseHeaders: []*fetch.HeaderEntry{{Name: "Content-Type", Value: "text/html"}},
				Body:            []byte(body),
			})
		}
	})
}

// Close removes the tab and waits for the answering goroutine.
func (t *Tab) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeDeadline)
	defer cancel()
	// In a dead Chrome there is nothing to close.
	_, _ = cdp.Call(ctx, t.conn, target.CloseTarget, target.CloseTargetParams{TargetID: t.id})
	t.stop()
	t.done.Wait()
}
