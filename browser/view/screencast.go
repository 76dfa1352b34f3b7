package view

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
)

// screencast receives the pictures of one tab.
//
// Chrome sends a picture when the tab has painted, and stops when maxInFlight are not
// acknowledged. It then keeps the newest picture and sends it after the next
// acknowledgement. A picture is acknowledged when the viewer has drawn it, so a slow
// connection gets fewer pictures, and none of them is old.
type screencast struct {
	tab     target.ID
	id      target.SessionID
	browser Browser
	events  chan event
	cancel  context.CancelFunc
	done    chan struct{}

	sent    map[int64]time.Time // the pictures that the viewer has not drawn
	quality quality
}

// event is a picture, or else what happened to the tab.
type event struct {
	frame  page.EventScreencastFrame
	hidden bool    // it is not in front any more
	dialog *Dialog // it opened a dialog, or closed one
}

// maxInFlight is how many pictures may be on the way to the viewer: one is drawn while the
// next arrives.
const maxInFlight = 2

// startScreencast attaches to a tab and starts its pictures. The caller stops it.
//
// With dialogs, the viewer answers the dialogs of the tab. Without, and if no client
// answers them, Chrome dismisses each at once.
func startScreencast(ctx context.Context, b Browser, tab target.ID, dialogs bool) (*screencast, error) {
	yes := true
	at, err := cdp.Call(ctx, b, target.AttachToTarget, target.AttachToTargetParams{TargetID: tab, Flatten: &yes})
	if err != nil {
		return nil, err
	}
	session := b.Session(at.SessionID)
	frames, stopFrames := session.Subscribe(page.ScreencastFrame.Method)
	visible, stopVisible := session.Subscribe(page.ScreencastVisibilityChanged.Method)
	opened, stopOpened := session.Subscribe(page.JavascriptDialogOpening.Method)
	closed, stopClosed := session.Subscribe(page.JavascriptDialogClosed.Method)
	run, cancel := context.WithCancel(ctx)
	c := &screencast{tab: tab, id: at.SessionID, browser: b, events: make(chan event), cancel: cancel, done: make(chan struct{}),
		sent: map[int64]time.Time{}}
	go func() {
		defer close(c.done)
		defer close(c.events)
		defer stopVisible()
		defer stopFrames()
		defer stopOpened()
		defer stopClosed()
		c.receive(run, sources{frames, visible, opened, closed})
	}()
	if dialogs {
		// Not awaited: a page whose dialog is open does not answer.
		err = b.Post(ctx, c.id, page.Enable.Method, page.EnableParams{})
	}
	if err != nil {
		c.stop(ctx)
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		c.stop(ctx)
		return nil, err
	}
	return c, nil
}

// start starts the pictures, or starts them anew with another quality.
func (c *screencast) start(ctx context.Context) error {
	level, yes := c.quality.level(), true
	return c.browser.Post(ctx, c.id, page.StartScreencast.Method, page.StartScreencastParams{
		Format: page.StartScreencastFormatJpeg, Quality: &level.percent, MaxWidth: level.size, MaxHeight: level.size,
		MaxFramesInFlight: maxInFlight, SendLastFrame: &yes})
}

// drawn acknowledges a picture that the viewer has drawn. A number that was not sent is
// ignored.
func (c *screencast) drawn(ctx context.Context, frame int64, now time.Time) error {
	if c == nil {
		return nil // the tab of the picture is not shown any more
	}
	at, ok := c.sent[frame]
	if !ok {
		return nil
	}
	delete(c.sent, frame)
	if c.quality.measured(now.Sub(at)) {
		if err := c.start(ctx); err != nil {
			return err
		}
	}
	return c.browser.Post(ctx, c.id, page.ScreencastFrameAck.Method, page.ScreencastFrameAckParams{SessionID: frame})
}

// stop ends the pictures. It accepts nil.
func (c *screencast) stop(ctx context.Context) {
	if c == nil {
		return
	}
	c.cancel()
	<-c.done
	// The tab may have been closed, and then there is nothing to detach from.
	_ = c.browser.Post(context.WithoutCancel(ctx), "", target.DetachFromTarget.Method, target.DetachFromTargetParams{SessionID: c.id})
}

// pictures returns the channel of events. It accepts nil, whose channel never has one. The
// channel is closed when Chrome has dropped the session, because the tab was closed.
func (c *screencast) pictures() <-chan event {
	if c == nil {
		return nil
	}
	return c.events
}

// sources are the events of the tab that become an [event].
type sources struct{ frames, visible, opened, closed <-chan jsonv2.Value }

func (c *screencast) receive(ctx context.Context, from sources) {
	for {
		var e event
		select {
		case <-ctx.Done():
			return
		case raw, ok := <-from.opened:
			var d page.EventJavascriptDialogOpening
			if !ok {
				return
			}
			if jsonv2.Unmarshal(raw, &d, jsonv2.AllowInvalidUTF8(true)) != nil {
				continue
			}
			e.dialog = &Dialog{Type: "dialog", Open: true, Kind: string(d.Type), Message: d.Message, Default: d.DefaultPrompt}
		case _, ok := <-from.closed:
			if !ok {
				return
			}
			e.dialog = &Dialog{Type: "dialog"}
		case raw, ok := <-from.frames:
			if !ok {
				return
			}
			if jsonv2.Unmarshal(raw, &e.frame, jsonv2.AllowInvalidUTF8(true)) != nil || e.frame.Metadata == nil {
				continue
			}
		case raw, ok := <-from.visible:
			if !ok {
				return
			}
			var v page.EventScreencastVisibilityChanged
			if jsonv2.Unmarshal(raw, &v) != nil || v.Visible {
				continue
			}
			e.hidden = true
		}
		select {
		case c.events <- e:
		case <-ctx.Done():
			return
		}
	}
}
