package state

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
)

// place is where a name belongs: a component and an origin.
type place struct{ component, origin string }

func (p place) compare(with place) int {
	return cmp.Or(cmp.Compare(p.component, with.component), cmp.Compare(p.origin, with.origin))
}

// knownState is what a document shows of its environment: names if it has them, else
// numbers, else the reason why it has neither.
type knownState struct {
	ctx            context.Context // of the comparison; nothing is added after its end
	doc            Document
	names          map[place]map[string]item
	counts         map[place]int
	missed         map[place]string  // what the capture tried to read and could not
	doubts         map[place]string  // what could not be counted
	numbered       map[named]int     // the last number appended to a name
	unknownOrigins map[string]string // why a component's origins are unknown, by component
}

// named is a name in a place.
type named struct {
	place
	name string
}

// knownPlace is what is known of one place: all names, a number, or the reason why
// neither is known.
type knownPlace struct {
	named   bool
	names   map[string]item
	items   int
	why     string // "" if something is known
	unknown place  // what the reason applies to: the place, or its whole component
}

// complete reports whether all names are known, which is also true of an empty place.
func (s knownPlace) complete() bool { return s.named || s.why == "" && s.items == 0 }

func knownOf(ctx context.Context, doc Document) knownState {
	k := knownState{ctx: ctx, doc: doc, numbered: map[named]int{}, unknownOrigins: map[string]string{}, names: map[place]map[string]item{}, counts: map[place]int{}, missed: map[place]string{}, doubts: map[place]string{}}
	k.name()
	for _, h := range doc.Inventory {
		p := place{h.Component, h.Origin}
		if why := h.reason().Text; why != "" && k.unknownOrigins[h.Component] == "" && (h.Origin == "" || h.Damage != "") {
			k.unknownOrigins[h.Component] = why // anything uncounted or lost may be from any origin
		}
		switch why := h.reason().Text; {
		case overCDP(doc, h):
		case why != "":
			k.doubts[p] = why
		default:
			k.counts[p] += h.Items
		}
	}
	for _, m := range doc.Missed {
		p := place{m.Component, m.Origin}
		switch m.Component {
		case ComponentTabs, ComponentExtensions:
			continue // no document has those that are not part of the environment
		case ComponentHistory, ComponentWindowName:
			p.origin = originOf(m.Origin)
		case ComponentSessionStorage:
			p.origin = sessionKey(m.Origin)
		}
		k.missed[p] = m.Reason
	}
	return k
}

// places returns the places that are known, or known to be unknown.
func (k knownState) places() []place {
	all := slices.Collect(maps.Keys(k.names))
	for _, more := range []iter.Seq[place]{maps.Keys(k.counts), maps.Keys(k.missed), maps.Keys(k.doubts)} {
		all = slices.AppendSeq(all, more)
	}
	return all
}

// of returns what is known of a place.
func (k knownState) of(p place) knownPlace {
	complete := place{component: p.component}
	names, there := k.names[p]
	n, counted := k.counts[p]
	switch {
	case k.missed[p] != "":
		return knownPlace{why: k.missed[p], unknown: p}
	case there:
		return knownPlace{named: true, names: names, items: len(names)}
	case counted:
		return knownPlace{items: n}
	case k.doubts[p] != "":
		return knownPlace{why: k.doubts[p], unknown: p}
	case k.lists(p.component):
		return knownPlace{named: true}
	case k.unknownOrigins[p.component] != "":
		return knownPlace{why: k.unknownOrigins[p.component], unknown: complete}
	case !onDisk(p.component):
		return knownPlace{why: "it was saved without being read: Chrome had crashed, or only the profile's files were saved", unknown: complete}
	case k.doc.Inventory == nil:
		return knownPlace{why: "its profile was not counted", unknown: complete}
	case k.doubts[place{component: ComponentDatadir}] != "":
		return knownPlace{why: k.doubts[place{component: ComponentDatadir}], unknown: complete}
	}
	return knownPlace{}
}

// lists reports whether the document lists all items of a component. What it does not
// list then does not exist.
func (k knownState) lists(component string) bool {
	switch component {
	case ComponentCookies:
		return k.doc.Complete || k.doc.IsFromDisk(component)
	case ComponentLocalStorage:
		return k.doc.Datadir == DatadirNone || k.doc.IsFromDisk(component)
	case ComponentExtensions, ComponentPasskeys, ComponentOverrides:
		return true
	}
	return !onDisk(component) && k.doc.Complete || k.doc.Datadir == DatadirNone
}

// onDisk reports whether the inventory lists all origins of a component.
func onDisk(component string) bool {
	switch component {
	case ComponentCookies, ComponentLocalStorage:
		return true
	}
	return CountedOnDisk(component)
}

// sessionKey returns a storage key unchanged. For a page's address it returns the key of
// the page's own sessionStorage.
func sessionKey(address string) string {
	if key, ok := ParseStorageKey(address); ok && key.Partitioned() {
		return address
	}
	return originOf(address) + "/"
}

// add adds a thing under its name. If the name is taken, as by an item of another tab, it
// appends a number.
func (k knownState) add(component, origin, name string, t item) {
	if k.ctx.Err() != nil {
		return
	}
	p := place{component, origin}
	if k.names[p] == nil {
		k.names[p] = map[string]item{}
	}
	free, of := name, named{p, name}
	for n := max(k.numbered[of], 1); ; {
		if _, numbered := k.names[p][free]; !numbered {
			k.names[p][free], k.numbered[of] = t, n
			return
		}
		n++
		free = name + " (" + strconv.Itoa(n) + ")"
	}
}
