package view

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// worldScript defines functions in an isolated world of a document, and returns them. Nothing
// of it is in the page until the viewer gives input. The daemon asks, because reports of the
// script would need the Runtime domain, which pages can notice.
//
//go:embed world.js
var worldScript string

const (
	worldName = "stasis live view" // Chrome has one world of that name for each document
	maxFrames = 50                 // of a tab; later ones are not asked

	// askDeadline bounds one look through the frames, because a page may be busy for long.
	askDeadline = 2 * time.Second
	// lookSoon and lookFor are when the frames are asked after an input, first and last.
	// Meanwhile they are asked at each tick, and later too until all have answered once.
	lookSoon = 60 * time.Millisecond
	lookFor  = 2 * time.Second
)

// prepare enables on the tab what a viewer with control needs: dialogs and file choosers. It
// does not wait, because a page whose dialog is open does not answer. It does not attach to
// frames of other sites: with their sessions, dialogs of the tab did not always reach the
// viewer.
func (c *screencast) prepare(ctx context.Context) error {
	if err := c.browser.Post(ctx, c.id, page.Enable.Method, page.EnableParams{}); err != nil {
		return err
	}
	return c.browser.Post(ctx, c.id, page.SetInterceptFileChooserDialog.Method, page.SetInterceptFileChooserDialogParams{Enabled: true})
}

// callWorld returns the expression that calls a function of worldScript.
func callWorld(call string) string { return worldScript + "." + call }

// askFrames calls a function of worldScript in the documents of a tab, until answered takes the
// JSON of an answer. It passes over frames that have gone. Not complete means that ctx ended first.
func askFrames(ctx context.Context, tab cdp.Session, call string, answered func(runtime.ExecutionContextID, []byte) bool) (complete bool) {
	tree, err := cdp.Call(ctx, tab, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return ctx.Err() == nil // the tab has gone
	}
	frames := framesOf(tree.FrameTree)
	yes := true
	for _, frame := range frames[:min(len(frames), maxFrames)] {
		made, err := cdp.Call(ctx, tab, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame, WorldName: worldName})
		if err != nil {
			continue // the frame has gone
		}
		result, err := cdp.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{
			Expression: callWorld(call), ContextID: made.ExecutionContextID, ReturnByValue: &yes})
		if err == nil && result.Result != nil && answered(made.ExecutionContextID, result.Result.Value) {
			return true
		}
	}
	return ctx.Err() == nil
}

// framesOf returns the frames of a tree, the outer ones first.
func framesOf(tree *page.FrameTree) []cdp.FrameID {
	if tree == nil || tree.Frame == nil {
		return nil
	}
	all := []cdp.FrameID{tree.Frame.ID}
	for _, child := range tree.ChildFrames {
		all = append(all, framesOf(child)...)
	}
	return all
}

// reply is what a look has found, or the end of what commands wait for. Only run reads it.
type reply struct {
	cast   *screencast
	began  time.Time // of a look; zero: it was cut off, and has found nothing out
	picker *picker   // of a look; nil: none is open
	typing bool      // of a look: the focus is in a field for text
	held   bool      // commands waited for it; it was no look
	copied *Copied   // of a copy
}

// look asks the frames of the shown tab for the picker that Chrome shows, in the
// background. A look that runs is enough. A page with an open dialog does not answer. While a
// picker is being closed, a look could find it still open, and give it another ID.
func (s *server) look(ctx context.Context) {
	c := s.shown
	if c == nil || c.dialog != nil || !s.viewer.Control || s.looking || s.holding != nil || !s.browser.MayShow(c.tab) {
		return
	}
	s.looking = true
	known := int64(0)
	if c.picker != nil {
		known = c.picker.ID
	}
	began := s.browser.Now()
	s.work.Go(func() {
		found := reply{cast: c}
		short, cancel := context.WithTimeout(ctx, askDeadline)
		defer cancel()
		complete := askFrames(short, s.browser.Session(c.id), fmt.Sprintf("look(%d)", known), func(in runtime.ExecutionContextID, answer []byte) bool {
			var p struct {
				picker
				Typing bool
			}
			if json.Unmarshal(answer, &p) != nil || p.ID == 0 {
				found.typing = found.typing || p.Typing
				return p.Typing
			}
			p.context, found.picker = in, &p.picker
			return true
		})
		if complete {
			found.began = began
		}
		s.deliver(ctx, found)
	})
}

// deliver passes a reply to run.
func (s *server) deliver(ctx context.Context, r reply) {
	select {
	case s.replies <- r:
	case <-ctx.Done():
	}
}

// replied processes a reply.
func (s *server) replied(r reply) error {
	if r.held {
		s.holding()
		s.holding = nil
		if r.copied == nil {
			return nil
		}
		return s.sendJSON(copiedMessage, *r.copied)
	}
	s.looking = false
	if r.began.IsZero() {
		return nil
	}
	r.cast.looked, r.cast.typing = r.began, r.typing
	return errors.Join(s.pickerFound(r.cast, r.picker), s.sendState())
}
