package view

import (
	"context"
	"unicode/utf16"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
)

// handle carries out a command. What Chrome refuses is ignored: the picture shows it.
func (s *server) handle(ctx context.Context, c Command) error {
	if c.Type == "drawn" {
		next, err := s.shown.drawn(ctx, c.Frame)
		if err != nil || next == nil {
			return err
		}
		return s.sendPicture(next)
	}
	switch c.Type {
	case "tab", "new_tab", "close_tab":
		return s.changeTabs(ctx, c)
	}
	if s.shown == nil || !s.browser.MayShow(s.shown.tab) {
		return nil
	}
	if c.givesInput() {
		if err := s.shown.useInput(ctx); err != nil {
			return err
		}
		s.soon.Reset(lookSoon)
	}
	post := func(method string, params any) error { return s.browser.Post(ctx, s.shown.id, method, params) }
	switch c.Type {
	case "mouse":
		if c.Event == "down" {
			s.shown.x, s.shown.y = c.X, c.Y
		}
		return post(input.DispatchMouseEvent.Method, mouse(c))
	case "wheel":
		return post(input.DispatchMouseEvent.Method, wheel{input.DispatchMouseEventTypeMouseWheel, c.X, c.Y, c.DX, c.DY, c.Modifiers})
	case "key":
		return post(input.DispatchKeyEvent.Method, key(c))
	case "compose":
		end := int64(len(utf16.Encode([]rune(c.Text))))
		return post(input.ImeSetComposition.Method, input.ImeSetCompositionParams{Text: c.Text, SelectionStart: end, SelectionEnd: end})
	case "text":
		return post(input.InsertText.Method, input.InsertTextParams{Text: c.Text})
	case "edit":
		return s.edit(ctx, c.Event)
	case "dialog":
		return s.answer(ctx, c)
	case "pick":
		return s.pick(ctx, c)
	case "files":
		return s.giveFiles(ctx, c)
	case "reload":
		return post(page.Reload.Method, page.ReloadParams{})
	case "back", "forward":
		return s.inHistory(ctx, c.Type == "forward")
	case "navigate":
		if s.browser.AllowedURL(c.URL) {
			return post(page.Navigate.Method, page.NavigateParams{URL: c.URL})
		}
		return s.sendJSON(noticeMessage, Notice{Type: "notice", Text: "This address cannot be opened in a session. Use http or https."})
	}
	return nil
}

func mouse(c Command) input.DispatchMouseEventParams {
	p := input.DispatchMouseEventParams{X: c.X, Y: c.Y, Button: input.MouseButton(c.Button), Buttons: c.Buttons, ClickCount: c.Clicks,
		Modifiers: c.Modifiers, PointerType: input.DispatchMouseEventPointerTypeMouse}
	switch c.Event {
	case "down":
		p.Type = input.DispatchMouseEventTypeMousePressed
	case "up":
		p.Type = input.DispatchMouseEventTypeMouseReleased
	default:
		p.Type = input.DispatchMouseEventTypeMouseMoved
	}
	return p
}

// wheel has the parameters of Input.dispatchMouseEvent for a wheel. Chrome requires both
// deltas, and cdproto omits one that is 0.
type wheel struct {
	Type      input.DispatchMouseEventType `json:"type"`
	X         float64                      `json:"x"`
	Y         float64                      `json:"y"`
	DeltaX    float64                      `json:"deltaX"`
	DeltaY    float64                      `json:"deltaY"`
	Modifiers int64                        `json:"modifiers"`
}

// key returns a key event. A key that types nothing is a rawKeyDown, as in Chrome's own
// DevTools.
func key(c Command) input.DispatchKeyEventParams {
	p := input.DispatchKeyEventParams{Modifiers: c.Modifiers, Key: c.Key, Code: c.Code, WindowsVirtualKeyCode: c.KeyCode,
		NativeVirtualKeyCode: c.KeyCode, Location: c.Location, AutoRepeat: &c.Repeat}
	switch {
	case c.Event == "up":
		p.Type = input.DispatchKeyEventTypeKeyUp
	case c.Text == "":
		p.Type = input.DispatchKeyEventTypeRawKeyDown
	default:
		p.Type, p.Text, p.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, c.Text, c.Text
	}
	return p
}

// inHistory goes one entry forward or back in the tab's history, if there is one.
func (s *server) inHistory(ctx context.Context, forward bool) error {
	tab := s.browser.Session(s.shown.id)
	history, err := cdp.Call(ctx, tab, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		return nil // the tab has just been closed
	}
	at := history.CurrentIndex - 1
	if forward {
		at += 2
	}
	if at < 0 || at >= int64(len(history.Entries)) || !s.browser.AllowedURL(history.Entries[at].URL) {
		return nil
	}
	return s.browser.Post(ctx, s.shown.id, page.NavigateToHistoryEntry.Method, page.NavigateToHistoryEntryParams{EntryID: history.Entries[at].ID})
}

// changeTabs shows, opens or closes a tab.
func (s *server) changeTabs(ctx context.Context, c Command) error {
	id := target.ID(c.ID)
	if c.Type != "new_tab" && !contains(s.tabs, id) {
		return nil
	}
	switch c.Type {
	case "new_tab":
		return s.browser.OpenTab(ctx)
	case "close_tab":
		// Not awaited: the page may ask the person whether to leave it.
		return s.browser.Post(ctx, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id})
	}
	if _, err := cdp.Call(ctx, s.browser, target.ActivateTarget, target.ActivateTargetParams{TargetID: id}); err != nil {
		return nil // it was closed
	}
	if err := s.show(ctx, id); err != nil {
		return err
	}
	return s.sendState()
}
