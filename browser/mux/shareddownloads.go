package mux

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// chooseDownloads records whether a shared context cancels downloads. Chrome has one setting
// for the profile, which must not stop the downloads of others. The command of a page counts
// for the page's context.
func (c *sharedCommand) chooseDownloads() bool {
	behavior := ""
	if c.params.get("behavior", &behavior) != nil {
		return false // Chrome reports what is wrong with it
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	context := c.context
	if by, made := c.m.targets.makerOf(c.session.target); context == "" && made && by.peer == &c.peer {
		context = by.context
	}
	if context == "" {
		return false
	}
	c.shared.denied = slices.DeleteFunc(c.shared.denied, func(id string) bool { return id == context })
	if behavior == "deny" {
		c.shared.denied = append(c.shared.denied, context)
		_ = c.params.set("behavior", "allowAndName") // never fails
	}
	return false
}

// downloadOf holds what the mux needs of an event of a download. The frame is that of the page
// that began it; a page's main frame has the page's ID.
type downloadOf struct {
	GUID  string `json:"guid"`
	Frame string `json:"frameId"`
	State string `json:"state"`
}

// hidesDownload reports whether an event is about the download of another client's page. The
// Mux's lock is held.
func (s *sharedContexts) hidesDownload(e envelope) bool {
	method := string(e.method)
	if !strings.HasPrefix(method, "Browser.download") {
		return false
	}
	var d downloadOf
	if json.Unmarshal(e.params, &d) != nil {
		return false
	}
	hidden := s.foreignDownloads
	if d.Frame != "" && s.hides(d.Frame) && len(hidden) < namesKept {
		hidden[d.GUID] = struct{}{}
	}
	_, hide := hidden[d.GUID]
	if d.State == "completed" || d.State == "canceled" {
		delete(hidden, d.GUID)
	}
	return hide
}

// deniedDownload reports whether a download begins in a page whose context cancels downloads.
func (m *Mux) deniedDownload(frame string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	by, made := m.targets.makerOf(frame)
	return made && by.peer.shared != nil && slices.Contains(by.peer.shared.denied, by.context)
}
