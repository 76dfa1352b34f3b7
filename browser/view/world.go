package view

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// worldScript defines functions in an isolated world of a document, and returns them. Nothing of it is in the
// page until the viewer gives input. The daemon asks, because reports of its own would need
// the Runtime domain, which pages can notice.
//
//go:embed world.js
var worldScript string

const (
	worldName = "stasis live view" // Chrome has one world of that name for each document
	maxFrames = 50                 // of a tab; later ones are not asked

	// askDeadline bounds one round through the frames. A page with an open dialog does not
	// answer.
	askDeadline = 2 * time.Second
	// lookSoon and lookFor are when the frames are asked after an input, first and last.
	// Meanwhile they are asked at each tick.
	lookSoon = 60 * time.Millisecond
	lookFor  = 2 * time.Second
)

// world is an isolated world of a document.
type world struct {
	session target.SessionID
	context runtime.ExecutionContextID
}

// prepare enables on a session of a tab what a viewer with control needs: dialogs and file
// choosers. It does not wait, because a page whose dialog is open does not answer. It does not
// attach to frames of other sites: with their sessions, dialogs of the tab did not always
// reach the viewer.
func (c *screencast) prepare(ctx context.Context, id target.SessionID) error {
	for _, command := range []struct {
		method string
		params any
	}{
		{page.Enable.Method, page.EnableParams{}},
		{page.SetInterceptFileChooserDialog.Method, page.SetInterceptFileChooserDialogParams{Enabled: true}},
	} {
		if err := c.browser.Post(ctx, id, command.method, command.params); err != nil {
			return err
		}
	}
	return nil
}

// sessions returns the sessions of the tab and of its frames in other processes.
func (c *screencast) sessions() []target.SessionID {
	return append([]target.SessionID{c.id}, slices.Collect(maps.Keys(c.frames))...)
}

// callWorld returns the expression that calls a function of worldScript.
func callWorld(call string) string { return worldScript + "." + call }

// askFrames calls a function of worldScript in the documents of sessions, until answered takes the
// JSON of an answer. It passes over what does not answer, and returns at askDeadline.
func askFrames(ctx context.Context, b Browser, sessions []target.SessionID, call string, answered func(world, []byte) bool) {
	ctx, cancel := context.WithTimeout(ctx, askDeadline)
	defer cancel()
	left, yes := maxFrames, true
	for _, id := range sessions {
		s := b.Session(id)
		tree, err := cdp.Call(ctx, s, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			continue // the frame has gone
		}
		for _, frame := range framesOf(tree.FrameTree) {
			if left--; left < 0 {
				return
			}
			made, err := cdp.Call(ctx, s, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame, WorldName: worldName})
			if err != nil {
				continue
			}
			result, err := cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{
				Expression: callWorld(call), ContextID: made.ExecutionContextID, ReturnByValue: &yes})
			if err == nil && result.Result != nil && answered(world{id, made.ExecutionContextID}, result.Result.Value) {
				return
			}
		}
	}
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

// reply is what a round through the frames of a tab has found. Only run reads it.
type reply struct {
	cast   *screencast
	picker *picker // of a look; nil: none is open
	copied *Copied // of a copy; nil: it was a look
}

// look asks the frames of the shown tab for the picker that Chrome shows, in the
// background. A round that runs is enough.
func (s *server) look(ctx context.Context) {
	c := s.shown
	if c == nil || !s.viewer.Control || s.looking || !s.browser.MayShow(c.tab) {
		return
	}
	s.looking = true
	sessions := c.sessions()
	s.work.Go(func() {
		found := reply{cast: c}
		askFrames(ctx, s.browser, sessions, "look()", func(in world, answer []byte) bool {
			var p *picker
			if json.Unmarshal(answer, &p) != nil || p == nil {
				return false
			}
			p.world, found.picker = in, p
			return true
		})
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
	if r.copied != nil {
		s.copying = false
		return s.sendJSON(copiedMessage, *r.copied)
	}
	s.looking = false
	return s.pickerFound(r.cast, r.picker)
}
