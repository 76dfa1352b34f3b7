package state

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Change describes how two documents differ in one component of one origin. It has names,
// and values if they were requested.
type Change struct {
	Name    string   `json:"name"`   // a component, as in the reports
	Origin  string   `json:"origin"` // "" if the component has no origins
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	// Before and After count the items in each document. If the document has only numbers
	// and no names, they are the whole comparison.
	Before int `json:"before"`
	After  int `json:"after"`
	// Attributes maps names and attributes to what differs other than the value. If the
	// value differs too, Attributes has the key "value" with nil.
	Attributes map[string]map[string]*Values `json:"attributes,omitempty"`
	// Values maps names to their differing values.
	Values map[string]Values `json:"values,omitempty"`
}

// Values holds two values of a name or attribute; nil means that there was or is none.
type Values struct {
	Before *string `json:"before"`
	After  *string `json:"after"`
}

// Uncompared names something that could not be compared, and the reason.
type Uncompared struct {
	Name   string `json:"name"`   // a component
	Origin string `json:"origin"` // "": the whole component, or a component without origins
	Reason string `json:"reason"`
}

// Diff compares two documents by component and origin. It returns the changes, and what
// could not be compared; both are sorted. What a document does not know is never a
// change. Changes name cookies, storage items, tabs and other things with names. A tab's
// name is its URL without query and fragment, which may be secret. Values are returned
// only if values is true, and never for passkeys. The time grows linearly with the number
// of items. If ctx ends, Diff stops and returns its error.
func Diff(ctx context.Context, before, after Document, values bool) ([]Change, []Uncompared, error) {
	old, new := knownOf(ctx, before), knownOf(ctx, after)
	places := map[place]bool{}
	for _, k := range []knownState{old, new} {
		for _, p := range k.places() {
			places[p] = true
		}
	}
	changes, uncompared := []Change{}, map[place]string{}
	for p := range places {
		if ctx.Err() != nil {
			break
		}
		was, is := old.of(p), new.of(p)
		c := Change{Name: p.component, Origin: p.origin, Added: []string{}, Removed: []string{}, Changed: []string{}, Before: was.items, After: is.items}
		switch {
		case was.why != "":
			uncompared[was.unknown] = "in the first snapshot: " + was.why
			continue
		case is.why != "":
			uncompared[is.unknown] = "in the second snapshot: " + is.why
			continue
		case was.complete() && is.complete():
			c.compare(ctx, was.names, is.names, values)
		case len(was.names)+len(is.names) > 0:
			uncompared[p] = "one of the snapshots has no names, only a number; the numbers were compared"
		default:
			uncompared[place{component: p.component}] = "only the number is known: the contents may have changed even if the number is the same"
		}
		if c.Before != c.After || len(c.Added)+len(c.Removed)+len(c.Changed) > 0 {
			changes = append(changes, c)
		}
	}
	had := map[string]bool{}
	for _, e := range before.Extensions {
		had[e.ID] = true
	}
	for _, e := range after.Extensions {
		if had[e.ID] {
			uncompared[place{ComponentExtensionStorage, e.Origin()}] = "chrome.storage.local and sync are in the profile and were not compared; session was compared"
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Origin, b.Origin)) })
	list := []Uncompared{}
	for _, p := range slices.SortedFunc(maps.Keys(uncompared), place.compare) {
		list = append(list, Uncompared{p.component, p.origin, uncompared[p]})
	}
	return changes, list, ctx.Err()
}

// compare fills in how the things of one place differ, by name. It stops if ctx ends.
func (c *Change) compare(ctx context.Context, old, new map[string]item, values bool) {
	all := map[string]bool{}
	for _, side := range []map[string]item{old, new} {
		for name := range side {
			all[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if ctx.Err() != nil {
			return
		}
		was, had := old[name]
		is, has := new[name]
		changed := Values{Before: was.value, After: is.value}
		switch {
		case !had:
			c.Added = append(c.Added, name)
		case !has:
			c.Removed = append(c.Removed, name)
		case was.same(is):
			continue
		default:
			c.Changed = append(c.Changed, name)
			if differing := was.differing(is); len(differing) > 0 {
				if c.Attributes == nil {
					c.Attributes = map[string]map[string]*Values{}
				}
				c.Attributes[name] = differing
			}
		}
		if values && !equal(changed.Before, changed.After) {
			if c.Values == nil {
				c.Values = map[string]Values{}
			}
			c.Values[name] = changed
		}
	}
}

// item is what is compared under a name.
type item struct {
	value      *string           // nil: it has no value, or one that is never returned
	attributes map[string]string // always returned
	secret     string            // compared and never returned
}

func (t item) sameValue(as item) bool { return equal(t.value, as.value) && t.secret == as.secret }

func (t item) same(as item) bool {
	return t.sameValue(as) && maps.Equal(t.attributes, as.attributes)
}

// differing returns the attributes that differ. If the value differs too, it adds "value"
// with nil.
func (t item) differing(from item) map[string]*Values {
	list := map[string]*Values{}
	for _, side := range []map[string]string{t.attributes, from.attributes} {
		for name := range side {
			v := Values{at(t.attributes, name), at(from.attributes, name)}
			if !equal(v.Before, v.After) {
				list[name] = &v
			}
		}
	}
	if len(list) > 0 && !t.sameValue(from) {
		list["value"] = nil
	}
	return list
}

func at(attributes map[string]string, name string) *string {
	if v, there := attributes[name]; there {
		return &v
	}
	return nil
}

func equal(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}
