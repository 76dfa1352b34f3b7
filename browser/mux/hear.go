package mux

import (
	"bytes"
	"strings"
	"sync/atomic"
)

// Heard is an event of Chrome that tells something of a session's pages. It is
// one that passes here anyway: of the mux's own watch over targets, of the
// daemon's downloads, or of a client that enabled its domain.
type Heard struct {
	Method string
	// Target is the page or worker that it is about, and the rest what is known
	// of that; all "" where the event is about none.
	Target, Type, URL, Title string
	Peer                     string // whose event it is; those of several clients may tell of one thing
	Params                   []byte
}

// listener is who hears; see [Mux.OnHeard].
type listener struct {
	hear func(Heard)
	all  bool
}

// listening is the listener of the moment, nil where there is none.
type listening = atomic.Pointer[listener]

// OnHeard has f called for every event that [Heard] is about, until stop: of what
// pages log only the errors, unless all. f is called by who reads Chrome's pipe
// and must not wait; it may keep what it is given. There is one listener at a
// time: a later one takes the place of an earlier, whose stop then does nothing.
// What pages there are is told first, as if they had just come to where they are.
func (m *Mux) OnHeard(f func(Heard), all bool) (stop func()) {
	l := &listener{f, all}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listening.Store(l)
	for _, info := range m.targets.all {
		m.tellTarget("Target.targetCreated", info)
	}
	return func() { m.listening.CompareAndSwap(l, nil) }
}

// Of the events with these methods most are of no interest; what is in them
// tells, so that a page which logs a lot costs no more than a look.
var (
	consoleError = []byte(`{"type":"error"`)
	logError     = []byte(`"level":"error"`)
	aDocument    = []byte(`"type":"Document"`)
)

// audible says whether the listener is to hear an event.
func (l *listener) audible(e envelope) bool {
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
		return bytes.Contains(e.params, aDocument)
	}
	return false
}

// tellHeard tells the listener of an event that came on a session. Downloads are
// told to the daemon, whoever else asked for them; events of pages count where
// clients asked for them. The lock is held.
func (m *Mux) tellHeard(l *listener, s *session, e envelope) {
	if ofBrowser := strings.HasPrefix(string(e.method), "Browser."); ofBrowser != s.owner.trusted || m.targets.hidden(s.target) {
		return
	}
	info := m.targets.all[s.target]
	l.hear(Heard{Method: string(e.method), Target: s.target, Type: info.Type, URL: info.URL, Title: info.Title, Peer: s.owner.root, Params: e.params})
}

// tellTarget tells the listener what became of a page that clients may see. The
// lock is held.
func (m *Mux) tellTarget(method string, info targetInfo) {
	l := m.listening.Load()
	if l == nil || info.Type != "page" || m.targets.hidden(info.TargetID) || m.Addresses.foreign(info.URL) {
		return
	}
	l.hear(Heard{Method: method, Target: info.TargetID, Type: info.Type, URL: info.URL, Title: info.Title})
}
