package state

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Change is what differs between two documents in one kind of state of one
// origin: names, and values where they were asked for.
type Change struct {
	Name    string   `json:"name"`   // a component, as in the reports
	Origin  string   `json:"origin"` // "" where the kind has none
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	// Before and After count what there was and is; of what is known by number
	// alone they are all there is.
	Before int `json:"before"`
	After  int `json:"after"`
	// Attributes has, by name and attribute, what differs of a changed name
	// beside its value. That the value differs too is told by "value" and nil.
	Attributes map[string]map[string]*Values `json:"attributes,omitempty"`
	// Values has the values of the names whose value differs.
	Values map[string]Values `json:"values,omitempty"`
}

// Values are those of one name or attribute: nil where there was or is none.
type Values struct {
	Before *string `json:"before"`
	After  *string `json:"after"`
}

// Uncompared is what two documents do not tell the difference of, and why.
type Uncompared struct {
	Name   string `json:"name"`   // a component
	Origin string `json:"origin"` // "": all of the component, or a kind without origins
	Reason string `json:"reason"`
}

// Diff tells what changed from one document to another, by component and
// origin, and what cannot be told; both sorted. What one of them does not know
// is never a change. Names are those of cookies, storage items, tabs and what
// else has one; a tab's is its URL without query and fragment, which may be
// secret. Values are given only if asked for, and of passkeys never. Its time grows with
// the number of things. When ctx ends it stops; the error is that of ctx.
func Diff(ctx context.Context, before, after Document, values bool) ([]Change, []Uncompared, error) {
	old, new := knownOf(ctx, before), knownOf(ctx, after)
	places := map[place]bool{}
	for _, k := range []known{old, new} {
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
			uncompared[was.unknown] = "of the first snapshot: " + was.why
			continue
		case is.why != "":
			uncompared[is.unknown] = "of the second snapshot: " + is.why
			continue
		case was.whole() && is.whole():
			c.compare(ctx, was.names, is.names, values)
		case len(was.names)+len(is.names) > 0:
			uncompared[p] = "one of the snapshots knows how many there are and no names; numbers were compared"
		default:
			uncompared[place{component: p.component}] = "known by number alone: where the number is the same, what it counts may have changed"
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
			uncompared[place{ComponentExtensionStorage, e.Origin()}] = "chrome.storage.local and sync lie in the profile, where they are not looked into; session was compared"
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Origin, b.Origin)) })
	list := []Uncompared{}
	for _, p := range slices.SortedFunc(maps.Keys(uncompared), place.compare) {
		list = append(list, Uncompared{p.component, p.origin, uncompared[p]})
	}
	return changes, list, ctx.Err()
}

// compare fills in what differs between the things of one place, by name. When ctx
// ends it stops.
func (c *Change) compare(ctx context.Context, old, new map[string]thing, values bool) {
	all := map[string]bool{}
	for _, side := range []map[string]thing{old, new} {
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
		told := Values{Before: was.value, After: is.value}
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
		if values && !equal(told.Before, told.After) {
			if c.Values == nil {
				c.Values = map[string]Values{}
			}
			c.Values[name] = told
		}
	}
}

// thing is what is compared under a name.
type thing struct {
	value      *string           // nil: it has none that is ever told
	attributes map[string]string // told to everybody
	untold     string            // compared and never told
}

func (t thing) sameValue(as thing) bool { return equal(t.value, as.value) && t.untold == as.untold }

func (t thing) same(as thing) bool {
	return t.sameValue(as) && maps.Equal(t.attributes, as.attributes)
}

// differing are the attributes that differ, with nil for the value where it
// differs beside others.
func (t thing) differing(from thing) map[string]*Values {
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
