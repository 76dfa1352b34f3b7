package mux

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// contextSet holds the shared contexts of one client. It decides which targets the client sees,
// and writes the IDs of the contexts into what Chrome says of them. The Mux's lock guards it,
// except where a field says otherwise.
type contextSet struct {
	SharedContexts
	client *client
	prefix string // of the IDs, so that no two clients have the same
	made   int
	all    map[string]*sharedContext // by ID

	foreignDownloads map[string]struct{} // GUIDs of downloads whose events are hidden

	held      []held // only the pipe's reader uses it
	heldBytes int    // of held
}

// sharedContext is one of a client's contexts.
type sharedContext struct {
	deniesDownloads bool // it cancels them
}

// maxSharedContexts bounds the contexts of one client at the same time.
const maxSharedContexts = 1024

func newContextSet(o SharedContexts, c *client) *contextSet {
	return &contextSet{SharedContexts: o, client: c, prefix: rand.Text(), all: map[string]*sharedContext{}, foreignDownloads: map[string]struct{}{}}
}

// create returns the ID of a new context, or "" if the client has too many.
func (x *contextSet) create() string {
	if len(x.all) >= maxSharedContexts {
		return ""
	}
	x.made++
	id := fmt.Sprintf("%s%06X", x.prefix, x.made) // Chrome's own IDs are upper-case too
	x.all[id] = &sharedContext{}
	return id
}

func (x *contextSet) has(id string) bool { return x.all[id] != nil }

// hides reports whether a target is another client's: its page, what is in the page, or all that
// is in a browser context of Chrome. A page that may be another's is hidden too. x may be nil:
// then the client sees the pages of all.
func (x *contextSet) hides(id string) bool {
	if x == nil {
		return false
	}
	m := x.client.m
	if by, owned := m.shared.owners.of(id); owned {
		return by.peer != &x.client.peer
	}
	info := m.targets.all[id]
	return info.Subtype == prerender || m.targets.madeContext(info.BrowserContextID) || m.shared.owners.undecided(id)
}

// deliver sends an event to the client. If it describes a page, it names the page's context. The
// lock is not held.
func (x *contextSet) deliver(msg []byte, e envelope) {
	var all fields
	if bytes.HasPrefix(e.method, targetDomain) && all.read(e.params) == nil && all["targetInfo"] != nil {
		x.client.m.mu.Lock()
		all["targetInfo"] = x.stamp(all["targetInfo"])
		x.client.m.mu.Unlock()
		e.params = all.write()
		msg = event(e, string(e.session))
	}
	x.client.deliver(msg, e)
}

// stampAnswer writes the client's contexts into an answer that lists or describes targets or
// contexts. x may be nil. The lock is not held.
func (x *contextSet) stampAnswer(method string, e *envelope) {
	if x == nil {
		return
	}
	var all fields
	switch method {
	case "Target.getTargetInfo", "Target.getTargets", "Target.getBrowserContexts":
		if all.read(e.result) != nil {
			return
		}
	default:
		return
	}
	x.client.m.mu.Lock()
	defer x.client.m.mu.Unlock()
	var infos []jsontext.Value
	switch method {
	case "Target.getTargetInfo":
		if info := all["targetInfo"]; info != nil {
			all["targetInfo"] = x.stamp(info)
		}
	case "Target.getTargets":
		if all.get("targetInfos", &infos) != nil {
			return
		}
		for i, info := range infos {
			infos[i] = x.stamp(info)
		}
		_ = all.set("targetInfos", infos) // never fails
	case "Target.getBrowserContexts":
		_ = all.set("browserContextIds", slices.Sorted(maps.Keys(x.all))) // never fails; the IDs are in the order of creation
	}
	e.result = all.write()
}

// stamp puts the context of the client's page into a description of the page, or returns it
// unchanged.
func (x *contextSet) stamp(info jsontext.Value) jsontext.Value {
	var is struct {
		TargetID string `json:"targetId"`
	}
	if json.Unmarshal(info, &is) != nil {
		return info
	}
	by, owned := x.client.m.shared.owners.of(is.TargetID)
	if !owned || by.peer != &x.client.peer || by.id == "" {
		return info
	}
	var all fields
	if all.read(info) != nil || all.set("browserContextId", by.id) != nil {
		return info
	}
	return all.write()
}
