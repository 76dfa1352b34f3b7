package mux

import (
	"bytes"
	"strings"
	"sync/atomic"
)

// PageEvent is an event about a session's pages. The mux enables nothing for it. Such an
// event comes from the mux's own target discovery, from the daemon's downloads, or from a
// client that enabled its domain. Events of downloads may come more than once.
type PageEvent struct {
	Method string
	// Target is the page or worker that the event is about. Type, URL and Title describe
	// it. All are "" if the event is about no target.
	Target, Type, URL, Title string
	Peer                     string // the peer that got the event; several clients may get an event about the same thing
	Params                   []byte
}

// listener receives events; see [Mux.OnPageEvent].
type listener struct {
	notify func(PageEvent)
	all    bool
}

// listening is the current listener, or nil.
type listening = atomic.Pointer[listener]

// OnPageEvent sets a listener: f is called for every event as described for [PageEvent],
// until stop. Of a page's log entries f gets only the errors, unless all is set. The
// pipe's reader and goroutines of clients call f, so f must not wait. f may keep its argument. There is one
// listener at a time: a later one replaces an earlier one, whose stop then does nothing.
// Before OnPageEvent returns, f gets one Target.targetCreated for each existing page.
func (m *Mux) OnPageEvent(f func(PageEvent), all bool) (stop func()) {
	l := &listener{f, all}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listening.Store(l)
	for _, info := range m.targets.all {
		m.notifyTarget("Target.targetCreated", info)
	}
	return func() { m.listening.CompareAndSwap(l, nil) }
}

// Most events of these methods are of no interest. A search in the undecoded bytes keeps
// pages that log a lot cheap.
var (
	consoleError     = []byte(`{"type":"error"`)
	logError         = []byte(`"level":"error"`)
	documentResponse = []byte(`"type":"Document"`)
)

// wants reports whether the listener gets an event.
func (l *listener) wants(e envelope) bool {
	if l == nil {
		return false
	}
	switch string(e.method) {
	case "Page.javascriptDialogOpening", "Page.javascriptDialogClosed", "Runtime.exceptionThrown",
		"Browser.downloadWillBegin", "Browser.downloadProgress":
		return true
	case "Runtime.consoleAPICalled":
		return l.all || bytes.HasPrefix(e.params, consoleError)
	case "Log.entryAdded":
		return l.all || bytes.Contains(e.params, logError)
	case "Network.responseReceived":
		return bytes.Contains(e.params, documentResponse)
	}
	return false
}

// notifyEvent passes an event of a session to the listener. Events of pages count only from
// clients' sessions. Those of downloads come from several sessions, and the first one counts:
// a client that got it may end the session before Chrome has written the others. The lock is
// held.
func (m *Mux) notifyEvent(l *listener, s *session, e envelope) {
	if ofBrowser := strings.HasPrefix(string(e.method), "Browser."); !ofBrowser && s.owner.trusted || m.targets.hidden(s.target) {
		return
	}
	info := m.targets.all[s.target]
	l.notify(PageEvent{Method: string(e.method), Target: s.target, Type: info.Type, URL: info.URL, Title: info.Title, Peer: s.owner.root, Params: e.params})
}

// notifyTarget reports a change of a page that clients may see to the listener. The lock is
// held.
func (m *Mux) notifyTarget(method string, info targetInfo) {
	l := m.listening.Load()
	if l == nil || info.Type != "page" || m.targets.hidden(info.TargetID) || m.Addresses.foreign(info.URL) {
		return
	}
	l.notify(PageEvent{Method: method, Target: info.TargetID, Type: info.Type, URL: info.URL, Title: info.Title})
}
