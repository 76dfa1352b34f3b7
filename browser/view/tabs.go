package view

import (
	"context"

	"github.com/chromedp/cdproto/target"
)

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
	return s.sendState()
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
			s.shown.picker, s.shown.chooser, s.shown.typing = nil, nil, false // the new document has none
			if err := s.showQuestions(); err != nil {
				return err
			}
			return s.shown.start(ctx) // a page in another process may send no pictures otherwise
		}
		return nil
	}
	s.hide(ctx)
	if id != "" && contains(s.tabs, id) {
		// If that fails, the tab was closed, and the next event updates the state.
		if cast, err := s.screencast(ctx, id); err == nil {
			cast.url = s.url(id)
			s.shown = cast
		}
	}
	return s.showQuestions()
}

// hide shows no tab. It keeps the session of a tab whose dialog is open.
func (s *server) hide(ctx context.Context) {
	c := s.shown
	s.shown = nil
	s.unsent.dropPictures()
	if c == nil || c.dialog == nil || c.pause(ctx) != nil {
		c.stop(ctx)
		return
	}
	s.kept[c.tab] = c
}

// screencast starts the pictures of a tab, on its kept session if there is one.
func (s *server) screencast(ctx context.Context, id target.ID) (*screencast, error) {
	kept := s.kept[id]
	if kept == nil {
		return startScreencast(ctx, s.browser, id, s.viewer.Control, &s.quality)
	}
	delete(s.kept, id)
	return kept, kept.start(ctx)
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
