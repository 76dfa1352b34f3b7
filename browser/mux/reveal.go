package mux

import (
	"bytes"
	"fmt"

	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json"
)

// RevealIfAllowed makes a page visible to clients again after it has left a foreign address. It
// returns false, and the page stays invisible, if the page still shows a foreign address.
func (m *Mux) RevealIfAllowed(id target.ID) bool {
	m.mu.Lock()
	foreign := m.Addresses.Foreign(m.targets.all[string(id)].URL)
	if !foreign {
		delete(m.targets.redirecting, string(id))
	}
	m.mu.Unlock()
	if !foreign {
		m.announce(id)
	}
	return !foreign
}

// announce makes a page known to clients that could not see it before. A client that waits
// until it is attached to every page of a tab, such as Puppeteer, would wait for ever.
// Clients that had seen the page get a second Target.targetCreated of it.
func (m *Mux) announce(id target.ID) {
	m.command("", "Target.getTargetInfo", fmt.Sprintf(`{"targetId":%q}`, id), func(e envelope) {
		if e.err != nil {
			return // the page has closed
		}
		var now struct {
			TargetInfo targetInfo `json:"targetInfo"`
		}
		if json.Unmarshal(e.result, &now) != nil {
			return
		}
		var notify []func()
		m.mu.Lock()
		for _, s := range m.sessions.all {
			if s.owner.trusted || m.hiddenFrom(s.owner, now.TargetInfo) {
				continue // for a client, the page may show a foreign address again
			}
			if s.watch.discovers("page") {
				e := envelope{method: []byte("Target.targetCreated"), params: e.result, session: []byte(s.id)}
				notify = append(notify, func() { s.owner.event(event(e, s.id), e) })
			}
			attachesPages := s.target == "" || m.targets.all[s.target].Type == "tab"
			if params := s.watch.attach; params != nil && attachesPages {
				notify = append(notify, func() { m.repeatAttach(s, params) })
			}
		}
		m.mu.Unlock()
		for _, f := range notify {
			f()
		}
	}, nil)
}

// repeatAttach sends a session's last Target.setAutoAttach again, with the same parameters.
// Chrome then attaches the session to those targets that it is not attached to (Chrome 156).
func (m *Mux) repeatAttach(s *session, params []byte) {
	n, err := m.requests.register(&pending{session: s.id, method: "Target.setAutoAttach", answer: func(envelope) {}})
	if err == nil {
		// In the peer's lane it does not overtake the peer's earlier commands.
		s.owner.lane.post(request(n, s.id, []byte("Target.setAutoAttach"), params))
	}
}

// watch is what a session's client has requested about new targets. The Mux's lock guards it.
type watch struct {
	attach   []byte // parameters of Target.setAutoAttach; nil if it is off
	discover []filterEntry
}

// filterEntry is an entry of CDP's Target.TargetFilter. The first entry that matches a
// target's type decides.
type filterEntry struct {
	Type    string `json:"type"` // "" matches every type
	Exclude bool   `json:"exclude"`
}

// defaultFilter is the filter that Chrome applies if a command has none.
var defaultFilter = []filterEntry{{"browser", true}, {"tab", true}, {"", false}}

// watchLimit is the largest command that a watch keeps, in bytes. A larger one counts as off.
// The commands of client libraries have some 100 bytes.
const watchLimit = 4 << 10

// record updates w from a command that its client sends.
func (w *watch) record(method string, params []byte) {
	var p struct {
		AutoAttach bool          `json:"autoAttach"`
		Discover   bool          `json:"discover"`
		Filter     []filterEntry `json:"filter"`
	}
	if json.Unmarshal(params, &p) != nil {
		return // Chrome reports what is wrong with it
	}
	small := len(params) <= watchLimit
	switch method {
	case "Target.setAutoAttach":
		if w.attach = nil; p.AutoAttach && small {
			w.attach = bytes.Clone(params)
		}
	case "Target.setDiscoverTargets":
		if w.discover = nil; p.Discover && small {
			if w.discover = p.Filter; p.Filter == nil {
				w.discover = defaultFilter
			}
		}
	}
}

// discovers reports whether the client gets events of targets of this type.
func (w *watch) discovers(kind string) bool {
	for _, f := range w.discover {
		if f.Type == "" || f.Type == kind {
			return !f.Exclude
		}
	}
	return false
}
