package view

import (
	"context"
	"errors"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// methods returns the methods of the events that receive processes. They come through one
// channel, so that they stay in order: a dialog may open right after another has closed.
func methods() []string {
	return []string{target.TargetCreated.Method, target.TargetInfoChanged.Method, target.TargetDestroyed.Method, target.DetachedFromTarget.Method,
		page.FileChooserOpened.Method, page.FrameNavigated.Method, downloadProgress,
		page.ScreencastFrame.Method, page.ScreencastVisibilityChanged.Method, page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method}
}

// receive processes an event of Chrome.
func (s *server) receive(ctx context.Context, e mux.Event) error {
	switch e.Method {
	case target.TargetCreated.Method, target.TargetInfoChanged.Method, target.TargetDestroyed.Method:
		return s.update(ctx)
	case target.DetachedFromTarget.Method:
		var d target.EventDetachedFromTarget
		if decodeEvent(e, &d) != nil {
			return nil
		}
		return s.detached(ctx, d.SessionID)
	}
	c := s.castOf(e.SessionID)
	switch {
	case c == nil: // its tab is not shown any more
		return nil
	case e.Method == page.FrameNavigated.Method:
		return s.navigated(c, e)
	case e.Method == downloadProgress:
		return s.downloaded(e)
	case e.Method == page.FileChooserOpened.Method:
		var f page.EventFileChooserOpened
		if decodeEvent(e, &f) != nil {
			return nil
		}
		return s.chooserOpened(c, f)
	case e.Method == page.JavascriptDialogOpening.Method:
		var d page.EventJavascriptDialogOpening
		if decodeEvent(e, &d) != nil {
			return nil
		}
		return s.dialogOpened(c, d)
	case e.Method == page.JavascriptDialogClosed.Method:
		return s.dialogClosed(ctx, c)
	case c != s.shown:
		return nil
	case e.Method == page.ScreencastVisibilityChanged.Method:
		var v page.EventScreencastVisibilityChanged
		if decodeEvent(e, &v) != nil || v.Visible {
			return nil
		}
		s.front = true
		return s.update(ctx)
	}
	var f page.EventScreencastFrame
	if decodeEvent(e, &f) != nil || f.Metadata == nil {
		return nil
	}
	s.painted = true
	p, err := c.next(ctx, f)
	if p == nil || err != nil {
		return err
	}
	return s.sendPicture(p)
}

// decodeEvent decodes the parameters of an event. Pages can put any bytes into a string.
func decodeEvent(e mux.Event, into any) error {
	return jsonv2.Unmarshal(e.Params, into, jsonv2.AllowInvalidUTF8(true))
}

// noSession is Chrome's error code for a session that has ended.
const noSession = -32001

// isDetached reports whether a command failed because its session has ended: its tab has
// gone. The event that says so may come later.
func isDetached(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && refused.Code == noSession
}

// castOf returns the screencast with a session, of the shown tab or a kept one; nil if there
// is none.
func (s *server) castOf(id target.SessionID) *screencast {
	if s.shown != nil && s.shown.id == id {
		return s.shown
	}
	for _, c := range s.kept {
		if c.id == id {
			return c
		}
	}
	return nil
}

// detached records that Chrome dropped a session, for example because the tab was closed.
func (s *server) detached(ctx context.Context, id target.SessionID) error {
	c := s.castOf(id)
	if c == nil {
		return nil
	}
	delete(s.kept, c.tab)
	if c != s.shown {
		return nil
	}
	s.shown, s.front = nil, true
	return s.update(ctx)
}
