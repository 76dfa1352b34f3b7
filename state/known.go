package state

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
)

// place is where a name belongs.
type place struct{ component, origin string }

func (p place) compare(with place) int {
	return cmp.Or(cmp.Compare(p.component, with.component), cmp.Compare(p.origin, with.origin))
}

// known is what a document tells of its environment: names where it has them,
// else numbers, and where neither, why.
type known struct {
	ctx    context.Context // of the comparison; nothing is added when it has ended
	doc    Document
	names  map[place]map[string]thing
	counts map[place]int
	missed map[place]string  // what was to be read and could not
	doubts map[place]string  // what could not be counted
	taken  map[named]int     // the last number that a name got
	unsure map[string]string // by component: why it is not known which origins it has
}

// named is a name in a place.
type named struct {
	place
	name string
}

// seen is what is known of one place: all names, or a number, or why neither.
type seen struct {
	named   bool
	names   map[string]thing
	items   int
	why     string // "" where something is known
	unknown place  // what the reason is of: the place, or its whole component
}

// whole reports whether all names are known: of nothing there are none.
func (s seen) whole() bool { return s.named || s.why == "" && s.items == 0 }

func knownOf(ctx context.Context, doc Document) known {
	k := known{ctx: ctx, doc: doc, taken: map[named]int{}, unsure: map[string]string{}, names: map[place]map[string]thing{}, counts: map[place]int{}, missed: map[place]string{}, doubts: map[place]string{}}
	k.name()
	for _, h := range doc.Inventory {
		p := place{h.Component, h.Origin}
		if why := h.reason().Text; why != "" && k.unsure[h.Component] == "" && (h.Origin == "" || h.Damage != "") {
			k.unsure[h.Component] = why // what was not counted, or lost, may have been of any origin
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
			continue // what of them is no part of the environment is in no document
		case ComponentHistory, ComponentWindowName:
			p.origin = originOf(m.Origin)
		case ComponentSessionStorage:
			p.origin = sessionKey(m.Origin)
		}
		k.missed[p] = m.Reason
	}
	return k
}

// places are those that something is known of, or known to be unknown.
func (k known) places() []place {
	all := slices.Collect(maps.Keys(k.names))
	for _, more := range []iter.Seq[place]{maps.Keys(k.counts), maps.Keys(k.missed), maps.Keys(k.doubts)} {
		all = slices.AppendSeq(all, more)
	}
	return all
}

// of tells what is known of a place.
func (k known) of(p place) seen {
	whole := place{component: p.component}
	names, there := k.names[p]
	n, counted := k.counts[p]
	switch {
	case k.missed[p] != "":
		return seen{why: k.missed[p], unknown: p}
	case there:
		return seen{named: true, names: names, items: len(names)}
	case counted:
		return seen{items: n}
	case k.doubts[p] != "":
		return seen{why: k.doubts[p], unknown: p}
	case k.lists(p.component):
		return seen{named: true}
	case k.unsure[p.component] != "":
		return seen{why: k.unsure[p.component], unknown: whole}
	case !onDisk(p.component):
		return seen{why: "it was saved without being read, after a crash or from a profile's files", unknown: whole}
	case k.doc.Inventory == nil:
		return seen{why: "its profile was not counted", unknown: whole}
	case k.doubts[place{component: ComponentDatadir}] != "":
		return seen{why: k.doubts[place{component: ComponentDatadir}], unknown: whole}
	}
	return seen{}
}

// lists reports whether the document names all there is of a component, so
// that what it does not name is not there.
func (k known) lists(component string) bool {
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

// onDisk reports whether the inventory has all origins of a component.
func onDisk(component string) bool {
	switch component {
	case ComponentCookies, ComponentLocalStorage:
		return true
	}
	return CountedOnDisk(component)
}

// sessionKey is a storage key as it is, and of a page's address that of its own
// sessionStorage.
func sessionKey(address string) string {
	if key, ok := ParseStorageKey(address); ok && key.Partitioned() {
		return address
	}
	return originOf(address) + "/"
}

// add gives a thing its name. Of several that bear one name, such as the items
// of two tabs, the later have a number.
func (k known) add(component, origin, name string, t thing) {
	if k.ctx.Err() != nil {
		return
	}
	p := place{component, origin}
	if k.names[p] == nil {
		k.names[p] = map[string]thing{}
	}
	free, of := name, named{p, name}
	for n := max(k.taken[of], 1); ; {
		if _, taken := k.names[p][free]; !taken {
			k.names[p][free], k.taken[of] = t, n
			return
		}
		n++
		free = name + " (" + strconv.Itoa(n) + ")"
	}
}
