package browser

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// pageHeard is what was heard of a page or worker so far.
type pageHeard struct {
	url        string
	pending    *waiting // its newest navigation, while that is not told
	answered   string   // the document that was answered last, and how
	status     int64
	dialog     string // the dialog that is open, and of which client that is known
	dialogPeer string
	// Of console and log the time of the newest entry: who enables them is told
	// again of what was there before.
	console, logged float64
}

// kindOf is the kind of happening that an event makes.
func kindOf(method string) string {
	switch method {
	case page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method:
		return HappenedDialog
	case browser.DownloadWillBegin.Method, browser.DownloadProgress.Method:
		return HappenedDownload
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method, log.EntryAdded.Method:
		return HappenedConsole
	case target.TargetCrashed.Method:
		return HappenedCrash
	case mux.Foreign:
		return HappenedBlocked
	}
	return HappenedNavigation
}

func (e *ear) pageOf(id string) *pageHeard {
	p := e.pages[id]
	if p == nil {
		p = &pageHeard{}
		e.pages[id] = p
	}
	return p
}

func (e *ear) happened(kind string, data map[string]any) *waiting {
	w := &waiting{Happening: Happening{Kind: kind, Data: data}}
	e.ready = append(e.ready, w)
	return w
}

// understand makes a happening of an event, completes one that waits, or only
// remembers something.
func (e *ear) understand(h mux.Heard) {
	switch h.Method {
	case target.TargetCreated.Method, target.TargetInfoChanged.Method:
		e.moved(h)
	case target.TargetDestroyed.Method:
		delete(e.pages, h.Target)
	case target.TargetCrashed.Method:
		e.happened(HappenedCrash, map[string]any{"page": h.Target, "url": h.URL})
	case mux.Foreign:
		e.happened(HappenedBlocked, map[string]any{"page": h.Target, "url": h.URL, "reason": "a session may not show this address"})
	case network.ResponseReceived.Method:
		e.answered(h)
	case page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method:
		e.dialog(h)
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method:
		e.console(h)
	case log.EntryAdded.Method:
		e.entry(h)
	case browser.DownloadWillBegin.Method, browser.DownloadProgress.Method:
		e.download(h)
	}
}

// moved takes where a page is. A new address is a navigation.
func (e *ear) moved(h mux.Heard) {
	p := e.pageOf(h.Target)
	if h.URL != p.url && h.URL != "" && (p.url != "" || h.URL != blankURL) {
		if p.pending != nil {
			p.pending.page = nil // its title is not to be had any more
		}
		data := map[string]any{"page": h.Target, "url": h.URL}
		p.pending = e.happened(HappenedNavigation, data)
		p.pending.page, p.pending.until = p, e.now().Add(settleHappening)
		if p.answered == withoutFragment(h.URL) {
			data["status"] = p.status
		}
		p.answered = ""
	}
	p.url = h.URL
}

// entitle asks for the title of a page that a navigation came to: Chrome tells of
// a new one only when something else changes. The browser answers by itself, so
// the page is not held up by it. Until a page has a title its address stands for
// one.
func (e *ear) entitle(ctx context.Context, w *waiting) {
	ctx, cancel := context.WithTimeout(ctx, titleDeadline)
	defer cancel()
	id, _ := w.Data["page"].(string)
	r, err := cdp.Call(ctx, e.driver, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: target.ID(id)})
	if err == nil && r.TargetInfo != nil && r.TargetInfo.URL == w.Data["url"] && r.TargetInfo.Title != "" && !strings.Contains(r.TargetInfo.URL, r.TargetInfo.Title) {
		w.Data["title"] = r.TargetInfo.Title
	}
}

// answered takes the answer to a page's request for a document.
func (e *ear) answered(h mux.Heard) {
	var r network.EventResponseReceived
	if json.Unmarshal(h.Params, &r) != nil || r.Response == nil || h.Type != "page" || string(r.FrameID) != h.Target {
		return
	}
	p := e.pageOf(h.Target)
	if p.pending != nil && withoutFragment(p.url) == r.Response.URL {
		p.pending.Data["status"] = r.Response.Status
		return
	}
	p.answered, p.status = r.Response.URL, r.Response.Status
}

func withoutFragment(url string) string {
	url, _, _ = strings.Cut(url, "#")
	return url
}

// dialog takes a dialog as it opens, of the first client that is told.
func (e *ear) dialog(h mux.Heard) {
	p := e.pageOf(h.Target)
	if h.Method == page.JavascriptDialogClosed.Method {
		p.dialog = ""
		return
	}
	var d page.EventJavascriptDialogOpening
	if json.Unmarshal(h.Params, &d) != nil {
		return
	}
	is := string(d.Type) + " " + d.Message
	if p.dialog == is && p.dialogPeer != h.Peer {
		return
	}
	p.dialog, p.dialogPeer = is, h.Peer
	e.happened(HappenedDialog, map[string]any{"page": h.Target, "url": d.URL, "dialog": string(d.Type), "text": d.Message})
}

// console takes what a page wrote to its console, or an exception that nothing
// caught.
func (e *ear) console(h mux.Heard) {
	var c struct {
		Timestamp float64                   `json:"timestamp"`
		Type      string                    `json:"type"`
		Args      []runtime.RemoteObject    `json:"args"`
		Exception *runtime.ExceptionDetails `json:"exceptionDetails"`
	}
	if json.Unmarshal(h.Params, &c) != nil {
		return
	}
	p := e.pageOf(h.Target)
	if c.Timestamp <= p.console {
		return
	}
	p.console = c.Timestamp
	level, text := c.Type, words(c.Args)
	if x := c.Exception; x != nil {
		level, text = "error", x.Text
		if x.Exception != nil && x.Exception.Description != "" {
			text += " " + x.Exception.Description
		}
	}
	e.happened(HappenedConsole, map[string]any{"page": h.Target, "url": h.URL, "level": level, "text": text})
}

// words are the arguments of a console call as a text.
func words(args []runtime.RemoteObject) string {
	var all []string
	for _, a := range args {
		var text string
		switch {
		case json.Unmarshal(a.Value, &text) == nil && len(a.Value) > 0:
			all = append(all, text)
		case len(a.Value) > 0:
			all = append(all, string(a.Value))
		default:
			all = append(all, a.Description)
		}
	}
	return strings.Join(all, " ")
}

// entry takes what the browser logged of a page: requests that failed, and
// what was refused.
func (e *ear) entry(h mux.Heard) {
	var l struct {
		Entry struct {
			Level     string  `json:"level"`
			Text      string  `json:"text"`
			Timestamp float64 `json:"timestamp"`
			URL       string  `json:"url"`
		} `json:"entry"`
	}
	if json.Unmarshal(h.Params, &l) != nil {
		return
	}
	p := e.pageOf(h.Target)
	if l.Entry.Timestamp <= p.logged {
		return
	}
	p.logged = l.Entry.Timestamp
	data := map[string]any{"page": h.Target, "url": h.URL, "level": l.Entry.Level, "text": l.Entry.Text}
	if l.Entry.URL != "" {
		data["source_url"] = l.Entry.URL
	}
	e.happened(HappenedConsole, data)
}

// download takes the beginning and the end of a download.
func (e *ear) download(h mux.Heard) {
	var d struct {
		GUID     string  `json:"guid"`
		URL      string  `json:"url"`
		Name     string  `json:"suggestedFilename"`
		State    string  `json:"state"`
		Received float64 `json:"receivedBytes"`
	}
	if json.Unmarshal(h.Params, &d) != nil {
		return
	}
	if h.Method == browser.DownloadWillBegin.Method {
		e.downloads[d.GUID] = d.Name
		e.happened(HappenedDownload, map[string]any{"state": "started", "name": d.Name, "url": d.URL})
		return
	}
	name, under := e.downloads[d.GUID]
	if !under || d.State != "completed" && d.State != "canceled" {
		return
	}
	delete(e.downloads, d.GUID)
	e.happened(HappenedDownload, map[string]any{"state": d.State, "name": name, "bytes": int64(d.Received)})
}
