package mux

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// newTabPages are what Chrome itself opens where no address is given. They show no
// files and lead to none (seen with 156).
var newTabPages = []string{"chrome://newtab/", "chrome://new-tab-page/", "chrome://new-tab-page-third-party/"}

// extensions are those of a session.
type extensions interface {
	owns(id string) bool
	ids() []string
}

// ownExtensions are the IDs of the extensions that a session asked for.
type ownExtensions map[string]struct{}

// Addresses decides which addresses the targets of a session may show. The zero value
// allows no chrome-extension: address. Its methods are safe for concurrent use.
type Addresses struct {
	extensions atomic.Pointer[ownExtensions] // nil until SetExtensions
}

// owns says whether an extension is one of the session's.
func (a *Addresses) owns(id string) bool {
	own := a.extensions.Load()
	if own == nil {
		return false
	}
	_, ok := (*own)[id]
	return ok
}

// ids are the session's extensions, in order.
func (a *Addresses) ids() []string {
	own := a.extensions.Load()
	if own == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(*own))
}

// SetExtensions names the session's own extensions, by ID: of all chrome-extension:
// addresses targets may show only theirs. Without a call they may show none.
func (a *Addresses) SetExtensions(ids []string) {
	own := ownExtensions{}
	for _, id := range ids {
		own[id] = struct{}{}
	}
	a.extensions.Store(&own)
}

// Allowed reports whether a target of this session may show an address. It is the
// one rule for clients' navigations, for what targets turn to, for back lists and for
// restored tabs.
func (a *Addresses) Allowed(url string) bool { return a.check(url) == nil }

func (a *Addresses) check(url string) error { return checkURL(url, a.owns) }

// Foreign reports whether a target that shows an address shows what it may not.
// Chrome's own new tab page and error pages are not meant: no client opens them, and
// they show no files.
func (a *Addresses) Foreign(url string) bool { return TargetPolicy && a.foreign(url) }

// foreign says whether a target shows something that it may not, such as
// chrome://settings in a tab that an extension opened.
func (a *Addresses) foreign(url string) bool {
	if url == "" || slices.Contains(newTabPages, url) {
		return false // not loaded yet, or Chrome's new tab page
	}
	return a.check(url) != nil && scheme(url) != "chrome-error"
}

// turned says whether an event of a client's session tells that a frame of it
// shows what it may not: the context in which scripts run there, or a request that
// waits for the client, who could read or make the answer. Such an event comes before
// whatever those scripts say, and may come before Chrome tells of the target.
func (a *Addresses) turned(e envelope) bool {
	if !TargetPolicy {
		return false
	}
	switch string(e.method) {
	case "Runtime.executionContextCreated":
		origin := member(e.params, `"origin":"`)
		return privileged(origin) || scheme(origin) == "chrome-extension" && a.check(origin) != nil && !contentScript(e.params)
	case "Fetch.requestPaused":
		// Sites look for extensions, and a PDF is shown by one: those may go on.
		return bytes.Contains(e.params, aDocumentRequest) && privileged(member(e.params, `"url":"`))
	}
	return false
}

var aDocumentRequest = []byte(`"resourceType":"Document"`)

// member gives the first text in JSON after a name, as it is written there.
func member(params []byte, name string) string {
	_, rest, _ := bytes.Cut(params, []byte(name))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}

// privileged says whether an address is a file's or a page's of Chrome's own.
func privileged(url string) bool {
	switch scheme(url) {
	case "file", "chrome", "chrome-untrusted", "chrome-search", "devtools":
		return !strings.HasPrefix(url, "chrome://new")
	}
	return false
}

// contentScript says whether a script context is an extension's in another's page.
func contentScript(params []byte) bool {
	return strings.Contains(string(params), `"type":"isolated"`)
}
