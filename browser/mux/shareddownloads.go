package mux

import (
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
	id := c.context
	if by, owned := c.m.shared.owners.of(c.session.target); id == "" && owned && by.peer == &c.peer {
		id = by.id
	}
	denies := behavior == "deny"
	if context := c.contexts.all[id]; context != nil {
		context.deniesDownloads = denies
	}
	if id != "" && denies {
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
func (x *contextSet) hidesDownload(e envelope) bool {
	method := string(e.method)
	if !strings.HasPrefix(method, "Browser.download") {
		return false
	}
	var d downloadOf
	if json.Unmarshal(e.params, &d) != nil {
		return false
	}
	hidden := x.foreignDownloads
	if d.Frame != "" && x.hides(d.Frame) && len(hidden) < namesKept {
		hidden[d.GUID] = struct{}{}
	}
	_, hide := hidden[d.GUID]
	if d.State == "completed" || d.State == "canceled" {
		delete(hidden, d.GUID)
	}
	return hide
}

// deniesDownload reports whether a download begins in a page whose context cancels downloads.
func (s *sharedContexts) deniesDownload(frame string) bool {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	by, owned := s.owners.of(frame)
	if !owned || by.peer.contexts == nil {
		return false
	}
	context := by.peer.contexts.all[by.id]
	return context != nil && context.deniesDownloads
}
