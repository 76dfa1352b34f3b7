package view

import (
	"context"

	"github.com/chromedp/cdproto/page"
)

// Dialog is the open dialog of the shown tab. Without Open, the shown tab has none.
type Dialog struct {
	Type    string `json:"type"` // dialog
	Open    bool   `json:"open"`
	Number  int64  `json:"number"` // of this dialog alone; an answer repeats it
	Kind    string `json:"kind"`   // alert, confirm, prompt or beforeunload
	Message string `json:"message"`
	Default string `json:"default"` // what a prompt suggests
}

func (s *server) dialogOpened(c *screencast, d page.EventJavascriptDialogOpening) error {
	if s.holding != nil && c == s.held {
		s.holding()
	}
	c.dialog = &Dialog{Type: "dialog", Open: true, Number: s.newQuestion(dialogMessage), Kind: string(d.Type), Message: d.Message, Default: d.DefaultPrompt}
	return s.showQuestions()
}

// dialogClosed records that the dialog of a tab was closed, by this viewer or by a client.
func (s *server) dialogClosed(ctx context.Context, c *screencast) error {
	c.dialog = nil
	if c != s.shown {
		delete(s.kept, c.tab)
		c.stop(ctx)
		return nil
	}
	return s.showQuestions()
}

// answer passes the viewer's answer to a dialog on. An answer to another dialog than the
// open one is ignored: the person saw another question.
func (s *server) answer(ctx context.Context, c Command) error {
	if s.shown.dialog == nil || s.shown.dialog.Number != c.Number {
		return nil
	}
	s.shown.dialog, s.asked[dialogMessage] = nil, 0 // a second answer could reach the next dialog
	return s.browser.Post(ctx, s.shown.id, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: c.Accept, PromptText: c.Text})
}
