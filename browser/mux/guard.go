package mux

import (
	"github.com/go-json-experiment/json"
)

// closesLastPage reports whether a command would close the last page of the session's own
// profile. If not, it records the target as closing, so that several closes at once do
// not count on each other's pages.
//
// It covers Target.closeTarget and Page.close. A page's own window.close() is no command
// of a client; see rootEvent.
func (c *client) closesLastPage(s *session, method string, params []byte) bool {
	m := c.m
	if !m.opts.KeepPage {
		return false
	}
	id := s.target
	switch method {
	case "Target.closeTarget":
		var p struct {
			TargetID string `json:"targetId"`
		}
		if json.Unmarshal(params, &p) != nil {
			return false
		}
		id = p.TargetID
	case "Page.close":
	default:
		return false
	}
	return m.closesLast(id)
}

// closesLast is closesLastPage for the page or tab with an ID.
func (m *Mux) closesLast(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.opts.KeepPage || m.closing {
		return false
	}
	last := m.targets.last(id)
	if _, known := m.targets.all[id]; known {
		m.targets.closing[id] = struct{}{}
	}
	return last
}

// openBlank opens about:blank in Chrome's default profile and then calls then on the
// pipe's reader.
func (m *Mux) openBlank(then func(*cdpError)) {
	gone := func() { then(&cdpError{codeRefused, "The browser has ended."}) }
	m.command("", "Target.createTarget", `{"url":"about:blank"}`, func(e envelope) {
		if e.err != nil {
			then(&cdpError{codeRefused, "The last page cannot be closed: opening another page failed."})
			return
		}
		then(nil)
	}, gone)
}

// AllowLastClose is called when the daemon closes Chrome. From then on the last page may
// close.
func (m *Mux) AllowLastClose() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closing = true
}
