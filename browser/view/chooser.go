package view

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"

	"github.com/stasisd/stasis/browser/mux"
)

// Chooser says that the shown tab asks for files. The viewer's page stores files of the
// person's machine among the session's files, and answers with their names. Without Open,
// the tab does not ask.
type Chooser struct {
	Type     string `json:"type"` // chooser
	Open     bool   `json:"open"`
	Number   int64  `json:"number"` // of this chooser alone; an answer repeats it
	Multiple bool   `json:"multiple"`
}

// chooser is a Chooser with its field.
type chooser struct {
	Chooser
	frame cdp.FrameID
	node  cdp.BackendNodeID
}

// FilesChanged says that a download of the shown tab is complete, and is one of the session's
// files now.
type FilesChanged struct {
	Type string `json:"type"` // files
}

// downloadProgress is the method of an event of a tab's download; see CDP's Page domain.
const downloadProgress = "Page.downloadProgress"

// downloaded processes the progress of a download.
func (s *server) downloaded(e mux.Event) error {
	var d struct {
		State string `json:"state"`
	}
	if jsonv2.Unmarshal(e.Params, &d, jsonv2.AllowInvalidUTF8(true)) != nil || d.State != "completed" {
		return nil
	}
	return s.sendJSON(filesMessage, FilesChanged{"files"})
}

// maxFiles is how many files a viewer may choose at once.
const maxFiles = 100

// chooserOpened records that a tab asks for files. If a client intercepts the tab's file
// choosers, the client answers, and not the viewer.
func (s *server) chooserOpened(c *screencast, e page.EventFileChooserOpened) error {
	if _, client := s.browser.ClientAnswers(c.tab); client {
		return s.sendJSON(noticeMessage, Notice{Type: "notice", Text: "The page asks for files. A program that is connected to the session chooses them."})
	}
	if e.BackendNodeID == 0 { // of showOpenFilePicker, which CDP cannot answer
		return s.sendJSON(noticeMessage, Notice{Type: "notice", Text: "The page asks for files in a way that the live view does not support."})
	}
	c.chooser = &chooser{Chooser{"chooser", true, s.newQuestion(chooserMessage), e.Mode == page.FileChooserOpenedModeSelectMultiple}, e.FrameID, e.BackendNodeID}
	return s.showQuestions()
}

// navigated closes the file chooser of a frame that has another document now. The field's ID
// may be that of a field of another site there.
func (s *server) navigated(c *screencast, e mux.Event) error {
	var n struct {
		Frame struct {
			ID cdp.FrameID `json:"id"`
		} `json:"frame"`
	}
	if f := c.chooser; f == nil || decodeEvent(e, &n) != nil || f.frame != n.Frame.ID {
		return nil
	}
	c.chooser = nil
	return s.showQuestions()
}

// giveFiles gives files of the session to the field that asked for them. An answer to
// another chooser than the open one is ignored.
func (s *server) giveFiles(ctx context.Context, c Command) error {
	f := s.shown.chooser
	if f == nil || f.Number != c.Number {
		return nil
	}
	s.shown.chooser, s.asked[chooserMessage] = nil, 0
	if !c.Accept {
		return nil
	}
	paths := make([]string, 0, len(c.Names))
	for _, name := range c.Names {
		path, err := s.browser.FilePath(name)
		if err != nil {
			return s.sendJSON(noticeMessage, Notice{Type: "notice", Text: "The file " + name + " is not among the session's files any more."})
		}
		paths = append(paths, path)
	}
	if !f.Multiple && len(paths) > 1 {
		paths = paths[:1]
	}
	return s.browser.Post(ctx, s.shown.id, dom.SetFileInputFiles.Method, dom.SetFileInputFilesParams{Files: paths, BackendNodeID: f.node})
}
