package pageevent

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

// Kinds of events.
const (
	Navigation = "navigated"
	Dialog     = "dialog"
	Download   = "download"
	Console    = "console"
	Crash      = "page_crashed"
	Empty      = "empty_context" // a client created a browser context, which has nothing of the environment
	Blocked    = "page_blocked"  // it navigated to an address that a session may not show
	Refused    = "egress_refused"
	Command    = "command_refused" // the policy refused a command of a client

	LimitReached = "limit_reached"
)

// Event is an event in a browser's pages. Its data holds strings, integers and booleans.
type Event struct {
	Kind string
	Data map[string]any
	// Lost is how many events of this kind were dropped before this one, because they
	// arrived faster than they were processed. An event with Lost has no data.
	Lost int
}

// pageState is what is known about a page or worker.
type pageState struct {
	url        string
	pending    *pending // its newest navigation, until that is reported
	answered   string   // the last document that got a response; status is the response's
	status     int64
	dialog     string // the open dialog; dialogPeer is the client that reported it
	dialogPeer string
	// Timestamps of the newest console and log entries. A client that enables these domains
	// gets the earlier entries again.
	console, logged float64
}

// kindOf returns the kind of event that a CDP event becomes.
func kindOf(method string) string {
	switch method {
	case page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method:
		return Dialog
	case browser.DownloadWillBegin.Method, browser.DownloadProgress.Method, mux.DownloadsExceeded:
		return Download
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method, log.EntryAdded.Method:
		return Console
	case target.TargetCrashed.Method:
		return Crash
	case mux.Foreign:
		return Blocked
	case mux.EmptyContext:
		return Empty
	case mux.CommandRefused:
		return Command
	}
	return Navigation
}

func (l *Listener) pageOf(id string) *pageState {
	p := l.pages[id]
	if p == nil {
		p = &pageState{}
		l.pages[id] = p
	}
	return p
}

func (l *Listener) add(kind string, data map[string]any) *pending {
	w := &pending{Event: Event{Kind: kind, Data: data}}
	l.ready = append(l.ready, w)
	return w
}

// handle converts a CDP event to an event, adds it to a pending event, or only updates
// what is known.
func (l *Listener) handle(h mux.PageEvent) {
	switch h.Method {
	case target.TargetCreated.Method, target.TargetInfoChanged.Method:
		l.navigated(h)
	case target.TargetDestroyed.Method:
		delete(l.pages, h.Target)
	case target.TargetCrashed.Method:
		l.add(Crash, map[string]any{"page": h.Target, "url": h.URL})
	case mux.Foreign:
		l.add(Blocked, map[string]any{"page": h.Target, "url": h.URL, "reason": "a session may not show this address"})
	case mux.EmptyContext:
		l.add(Empty, map[string]any{"text": "a client created a browser context, which is empty: its pages are not logged in. Use the default context, or connect with context=environment"})
	case mux.CommandRefused:
		var params map[string]any
		_ = json.Unmarshal(h.Params, &params) // of the mux
		l.add(Command, params)
	case network.ResponseReceived.Method:
		l.answered(h)
	case page.JavascriptDialogOpening.Method, page.JavascriptDialogClosed.Method:
		l.dialog(h)
	case runtime.ConsoleAPICalled.Method, runtime.ExceptionThrown.Method:
		l.console(h)
	case log.EntryAdded.Method:
		l.entry(h)
	case browser.DownloadWillBegin.Method, browser.DownloadProgress.Method, mux.DownloadsExceeded:
		l.download(h)
	}
}

// navigated records the address of a page. A new address is a navigation.
func (l *Listener) navigated(h mux.PageEvent) {
	p := l.pageOf(h.Target)
	if h.URL != p.url && h.URL != "" && (p.url != "" || h.URL != "about:blank") {
		if p.pending != nil {
			p.pending.page = nil // its title can no longer be read
		}
		data := map[string]any{"page": h.Target, "url": h.URL}
		p.pending = l.add(Navigation, data)
		now := l.now()
		p.pending.page, p.pending.until, p.pending.last = p, now.Add(settleTime), now.Add(titleTime)
		if p.answered == withoutFragment(h.URL) {
			data["status"] = p.status
		}
		p.answered = ""
	}
	p.url = h.URL
}

// readTitle reads the title of the page of a navigation. Chrome sends no event for a new
// title alone. The browser process answers, so the page is not delayed. A page without a
// title has its address as the title, which is not used. It reports false if the page may get
// a title later, or if Chrome has not answered.
func (l *Listener) readTitle(ctx context.Context, w *pending) bool {
	ctx, cancel := context.WithTimeout(ctx, titleDeadline)
	defer cancel()
	id, _ := w.Data["page"].(string)
	r, err := cdp.Call(ctx, l.browser, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: target.ID(id)})
	if err != nil {
		return ctx.Err() == nil
	}
	if r.TargetInfo == nil || r.TargetInfo.URL != w.Data["url"] || r.TargetInfo.URL == "about:blank" {
		return true
	}
	if strings.Contains(r.TargetInfo.URL, r.TargetInfo.Title) {
		return false
	}
	w.Data["title"] = r.TargetInfo.Title
	return true
}

// answered records the response to a page's request for a document.
func (l *Listener) answered(h mux.PageEvent) {
	var r network.EventResponseReceived
	if json.Unmarshal(h.Params, &r) != nil || r.Response == nil || h.Type != "page" || string(r.FrameID) != h.Target {
		return
	}
	p := l.pageOf(h.Target)
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

// dialog reports a dialog when it opens. If several clients get the event, only the first
// counts.
func (l *Listener) dialog(h mux.PageEvent) {
	p := l.pageOf(h.Target)
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
	l.add(Dialog, map[string]any{"page": h.Target, "url": d.URL, "dialog": string(d.Type), "text": d.Message})
}

// console reports a console call of a page, or an uncaught exception.
func (l *Listener) console(h mux.PageEvent) {
	var c struct {
		Timestamp float64                   `json:"timestamp"`
		Type      string                    `json:"type"`
		Args      []runtime.RemoteObject    `json:"args"`
		Exception *runtime.ExceptionDetails `json:"exceptionDetails"`
	}
	if json.Unmarshal(h.Params, &c) != nil {
		return
	}
	p := l.pageOf(h.Target)
	if c.Timestamp <= p.console {
		return
	}
	p.console = c.Timestamp
	level, text := c.Type, argsText(c.Args)
	if x := c.Exception; x != nil {
		level, text = "error", x.Text
		if x.Exception != nil && x.Exception.Description != "" {
			text += " " + x.Exception.Description
		}
	}
	l.add(Console, map[string]any{"page": h.Target, "url": h.URL, "level": level, "text": text})
}

// argsText returns the arguments of a console call as text.
func argsText(args []runtime.RemoteObject) string {
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

// entry reports what the browser logged for a page: failed and refused requests.
func (l *Listener) entry(h mux.PageEvent) {
	var logged struct {
		Entry struct {
			Level     string  `json:"level"`
			Text      string  `json:"text"`
			Timestamp float64 `json:"timestamp"`
			URL       string  `json:"url"`
		} `json:"entry"`
	}
	if json.Unmarshal(h.Params, &logged) != nil {
		return
	}
	p := l.pageOf(h.Target)
	if logged.Entry.Timestamp <= p.logged {
		return
	}
	p.logged = logged.Entry.Timestamp
	data := map[string]any{"page": h.Target, "url": h.URL, "level": logged.Entry.Level, "text": logged.Entry.Text}
	if logged.Entry.URL != "" {
		data["source_url"] = logged.Entry.URL
	}
	l.add(Console, data)
}

// download is a running download.
type download struct {
	name   string
	reason string // why the daemon cancels it; "" if it does not
}

// download reports the start and the end of a download.
func (l *Listener) download(h mux.PageEvent) {
	var d struct {
		GUID     string  `json:"guid"`
		URL      string  `json:"url"`
		Name     string  `json:"suggestedFilename"`
		File     string  `json:"filePath"` // name among the session's files; see mux
		State    string  `json:"state"`
		Received float64 `json:"receivedBytes"`
	}
	if json.Unmarshal(h.Params, &d) != nil {
		return
	}
	running := l.downloads[d.GUID]
	if h.Method == browser.DownloadWillBegin.Method {
		if running != nil {
			return
		}
		l.downloads[d.GUID] = &download{name: d.Name}
		l.add(Download, map[string]any{"state": "started", "guid": d.GUID, "name": d.Name, "url": d.URL})
		return
	}
	switch {
	case running == nil:
		return
	case h.Method == mux.DownloadsExceeded:
		running.reason = "the session's downloads exceed --max-downloads"
		return
	case d.State != "completed" && d.State != "canceled":
		return
	}
	delete(l.downloads, d.GUID)
	data := map[string]any{"state": d.State, "guid": d.GUID, "name": running.name, "bytes": int64(d.Received)}
	if d.File != "" {
		data["file"] = d.File
	}
	if d.State == "canceled" && running.reason != "" {
		data["reason"] = running.reason
	}
	l.add(Download, data)
}
