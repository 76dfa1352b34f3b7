package view

import (
	"bytes"
	"context"
	"image/jpeg"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
)

// screencast receives the pictures of one tab.
//
// Chrome sends a picture when the tab has painted. At most maxUndrawn are on the way to the
// viewer. Then the newest picture is held until the viewer has drawn one, so a slow
// connection gets fewer pictures, and none of them is old.
//
// Chrome must get an acknowledgement of each picture, soon. If some are missing, it answers
// no Page.captureScreenshot of the tab, of any client (measured, Chromium 156). So a held
// picture is acknowledged too, at the next tick.
type screencast struct {
	tab     target.ID
	url     string // of the tab when the pictures were last started
	id      target.SessionID
	browser Browser
	dialog  *Dialog // that the tab has opened, and that nobody has answered
	picker  *picker // that Chrome shows for the tab
	typing  bool    // the focus is in a field for text
	chooser *chooser

	last    int64          // the number of the newest picture; Chrome gives them no numbers
	sent    map[int64]sent // by number, the pictures that the viewer has not drawn
	held    *picture
	unacked bool     // held is not acknowledged
	quality *quality // of the viewer's connection

	x, y  float64   // where the person clicked last, in CSS pixels of the tab
	input bool      // the pictures are small, because the person gives input
	used  time.Time // when the person gave input last
	// looked is when the last look began in which all frames answered.
	looked time.Time
}

// sent describes a picture that is on the way to the viewer.
type sent struct {
	at   time.Time
	size int // in bytes
	with int // the bytes on the way when it was sent, its own included
}

// picture is one picture with its number.
type picture struct {
	page.EventScreencastFrame
	number int64
}

// maxUndrawn is how many pictures may be on the way to the viewer: one is drawn while the
// next arrives. Until the first is measured, it is one.
const maxUndrawn = 2

// inputFor is how long after an input the pictures stay small.
const inputFor = time.Second

// startScreencast attaches to a tab and starts its pictures. The caller stops it.
//
// With control, the viewer answers the dialogs of the tab. Without, and if no client answers
// them, Chrome dismisses each at once.
func startScreencast(ctx context.Context, b Browser, tab target.ID, control bool, q *quality) (*screencast, error) {
	yes := true
	at, err := cdp.Call(ctx, b, target.AttachToTarget, target.AttachToTargetParams{TargetID: tab, Flatten: &yes})
	if err != nil {
		return nil, err
	}
	c := &screencast{tab: tab, id: at.SessionID, browser: b, sent: map[int64]sent{}, quality: q}
	if control {
		err = c.prepare(ctx)
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

// start starts the pictures, or starts them anew with another quality. Chrome refuses to
// start what it has started.
func (c *screencast) start(ctx context.Context) error {
	level, yes := c.quality.level(c.input), true
	if err := c.browser.Post(ctx, c.id, page.StopScreencast.Method, nil); err != nil {
		return err
	}
	return c.browser.Post(ctx, c.id, page.StartScreencast.Method, page.StartScreencastParams{
		Format: page.StartScreencastFormatJpeg, Quality: &level.percent, MaxWidth: level.size, MaxHeight: level.size,
		SendLastFrame: &yes})
}

// setInput chooses small pictures, which arrive sooner, or sharp ones. It accepts nil.
func (c *screencast) setInput(ctx context.Context, input bool) error {
	if c == nil || c.input == input {
		return nil
	}
	c.input = input
	if input {
		if err := c.dropHeld(ctx); err != nil {
			return err
		}
	}
	return c.start(ctx)
}

// useInput is called before each input.
func (c *screencast) useInput(ctx context.Context) error {
	if c != nil {
		c.used = c.browser.Now()
	}
	return c.setInput(ctx, true)
}

// usedSince reports whether the person gave input within the last while, or has a picker
// open. It accepts nil.
func (c *screencast) usedSince(while time.Duration) bool {
	return c != nil && (c.picker != nil || c.browser.Now().Sub(c.used) <= while)
}

// unseen reports whether no look has shown yet what the last input led to. It accepts nil.
func (c *screencast) unseen() bool {
	return c != nil && !c.used.IsZero() && !c.looked.After(c.used)
}

// tick is called every now and then. It accepts nil.
func (c *screencast) tick(ctx context.Context) error {
	if c != nil && c.input && c.browser.Now().Sub(c.used) > inputFor {
		if err := c.setInput(ctx, false); err != nil {
			return err
		}
	}
	return c.ackHeld(ctx)
}

// next returns the picture to send now, if any: the new one, unless too many are on the
// way.
func (c *screencast) next(ctx context.Context, frame page.EventScreencastFrame) (*picture, error) {
	c.last++
	p := &picture{frame, c.last}
	if c.tooLarge(p) {
		return nil, c.ack(ctx, p)
	}
	if len(c.sent) == 0 || c.quality.known && len(c.sent) < maxUndrawn {
		c.send(p)
		return p, c.ack(ctx, p)
	}
	if err := c.ackHeld(ctx); err != nil {
		return nil, err
	}
	c.held, c.unacked = p, true
	return nil, nil
}

// tooLarge reports whether a picture has more pixels than the present quality has. Chrome
// took it before the pictures were last started, and another one follows. Up to four come
// (measured, Chromium 156).
func (c *screencast) tooLarge(p *picture) bool {
	is, err := jpeg.DecodeConfig(bytes.NewReader(p.Data))
	return err == nil && int64(max(is.Width, is.Height)) > c.quality.level(c.input).size
}

// send records that a picture is sent to the viewer now.
func (c *screencast) send(p *picture) {
	on := sent{at: c.browser.Now(), size: len(p.Data), with: len(p.Data)}
	for _, before := range c.sent {
		on.with += before.size
	}
	c.sent[p.number] = on
}

func (c *screencast) ack(ctx context.Context, p *picture) error {
	return c.browser.Post(ctx, c.id, page.ScreencastFrameAck.Method, page.ScreencastFrameAckParams{SessionID: p.SessionID})
}

// ackHeld acknowledges the held picture, once. It accepts nil.
func (c *screencast) ackHeld(ctx context.Context) error {
	if c == nil || !c.unacked {
		return nil
	}
	c.unacked = false
	return c.ack(ctx, c.held)
}

// drawn records that the viewer has drawn a picture. It returns the held picture if that
// can be sent now. It accepts nil, and a number that was not sent.
func (c *screencast) drawn(ctx context.Context, number int64) (*picture, error) {
	if c == nil {
		return nil, nil // the tab of the picture is not shown any more
	}
	was, ok := c.sent[number]
	if !ok {
		return nil, nil
	}
	delete(c.sent, number)
	level := c.quality.at
	if c.quality.measured(was.with, c.browser.Now().Sub(was.at)) {
		if c.quality.at > level {
			if err := c.dropHeld(ctx); err != nil {
				return nil, err
			}
		}
		if err := c.start(ctx); err != nil {
			return nil, err
		}
	}
	if c.held == nil {
		return nil, nil
	}
	if err := c.ackHeld(ctx); err != nil {
		return nil, err
	}
	p := c.held
	c.held = nil
	c.send(p)
	return p, nil
}

// dropHeld drops the held picture before a start with smaller ones.
func (c *screencast) dropHeld(ctx context.Context) error {
	err := c.ackHeld(ctx)
	c.held = nil
	return err
}

// pause ends the pictures and keeps the session, because Chrome dismisses the dialog of a tab
// if a session that may answer it ends. start resumes.
func (c *screencast) pause(ctx context.Context) error {
	clear(c.sent)
	c.held, c.unacked = nil, false
	return c.browser.Post(ctx, c.id, page.StopScreencast.Method, nil)
}

// stop ends the pictures and the session. It accepts nil.
func (c *screencast) stop(ctx context.Context) {
	if c == nil {
		return
	}
	// The tab may have been closed, and then there is nothing to detach from.
	_ = c.browser.Post(context.WithoutCancel(ctx), "", target.DetachFromTarget.Method, target.DetachFromTargetParams{SessionID: c.id})
}
