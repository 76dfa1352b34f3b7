package mux

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// newTabPages are the addresses that Chrome itself opens if no address is given. They
// show no files and link to none (seen with Chrome 156).
var newTabPages = []string{"chrome://newtab/", "chrome://new-tab-page/", "chrome://new-tab-page-third-party/"}

// extensions is the set of a session's own extensions.
type extensions interface {
	owns(id string) bool
	ids() []string
}

// ownExtensions holds the IDs of the extensions that a session requested.
type ownExtensions map[string]struct{}

// Addresses decides which addresses the targets of a session may show. The zero value
// allows no chrome-extension: address. Its methods are safe for concurrent use.
type Addresses struct {
	extensions atomic.Pointer[ownExtensions] // nil until SetExtensions
}

// owns reports whether the session requested the extension.
func (a *Addresses) owns(id string) bool {
	own := a.extensions.Load()
	if own == nil {
		return false
	}
	_, ok := (*own)[id]
	return ok
}

// ids returns the IDs of the session's extensions, sorted.
func (a *Addresses) ids() []string {
	own := a.extensions.Load()
	if own == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(*own))
}

// SetExtensions sets the IDs of the session's own extensions. Targets may show
// chrome-extension: addresses of these extensions only. Before the first call they may
// show none.
func (a *Addresses) SetExtensions(ids []string) {
	own := ownExtensions{}
	for _, id := range ids {
		own[id] = struct{}{}
	}
	a.extensions.Store(&own)
}

// Allowed reports whether a target of this session may show an address. The same rule
// applies to clients' navigations, to addresses that targets navigate to, to back lists
// and to restored tabs.
func (a *Addresses) Allowed(url string) bool { return a.check(url) == nil }

func (a *Addresses) check(url string) error { return checkURL(url, a.owns) }

// Foreign reports whether a target at this address shows something that clients must not
// see. It is false for Chrome's new tab page and error pages: clients cannot navigate to
// them, and they show no files.
func (a *Addresses) Foreign(url string) bool { return TargetPolicy && a.foreign(url) }

// foreign does the work of Foreign, without regard to TargetPolicy. An example of a
// foreign address is chrome://settings in a tab that an extension opened.
func (a *Addresses) foreign(url string) bool {
	if url == "" || slices.Contains(newTabPages, url) {
		return false // not loaded yet, or Chrome's new tab page
	}
	return a.check(url) != nil && scheme(url) != "chrome-error"
}

// showsForeign reports whether an event of a client's session shows that one of its
// frames is at a foreign address. Such an event is the creation of a script context, or a
// paused request whose answer the client could read or make. Chrome sends it before the
// page's scripts can report anything, and sometimes before it reports the target's new
// address.
func (a *Addresses) showsForeign(e envelope) bool {
	if !TargetPolicy {
		return false
	}
	switch string(e.method) {
	case "Runtime.executionContextCreated":
		origin := member(e.params, `"origin":"`)
		return privileged(origin) || scheme(origin) == "chrome-extension" && a.check(origin) != nil && !contentScript(e.params)
	case "Fetch.requestPaused":
		// Sites probe for extensions, and an extension shows PDFs. Both are allowed.
		return bytes.Contains(e.params, documentRequest) && privileged(member(e.params, `"url":"`))
	}
	return false
}

var documentRequest = []byte(`"resourceType":"Document"`)

// member returns the first string after a name in JSON, without decoding its escapes.
func member(params []byte, name string) string {
	_, rest, _ := bytes.Cut(params, []byte(name))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// privileged reports whether an address is a file or one of Chrome's own pages.
func privileged(url string) bool {
	switch scheme(url) {
	case "file", "chrome", "chrome-untrusted", "chrome-search", "devtools":
		return !strings.HasPrefix(url, "chrome://new")
	}
	return false
}

// contentScript reports whether a script context belongs to an extension's content script
// in another page.
func contentScript(params []byte) bool {
	return strings.Contains(string(params), `"type":"isolated"`)
}
