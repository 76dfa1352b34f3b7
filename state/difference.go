package state

import (
	"cmp"
	"slices"
	"time"
)

// Who made a difference.
const (
	ByRestore = "restore" // it did not come back as it was saved
	BySite    = "site"    // it came back, and the site has changed it since
)

// MaxNames bounds how many names a difference lists.
const MaxNames = 20

// Difference tells how what is there differs from what was saved: how many
// items, and the names of the first of them. Values are never told.
type Difference struct {
	Component string   `json:"component"`
	Origin    string   `json:"origin"`
	By        string   `json:"by"`
	Missing   int      `json:"missing"`
	Changed   int      `json:"changed"`
	Added     int      `json:"added"`
	Names     []string `json:"names"` // sorted; of cookies their names, of storage its keys
	// More is how many differences of other origins are added up in this one.
	More int `json:"more,omitempty"`
}

// Verification is the outcome of reading a restored environment back.
type Verification struct {
	// Components replace the report's lines of the same name and origin.
	Components  []Component
	Differences []Difference
}

// OK reports whether everything came back; what the sites changed afterwards
// does not count.
func (v Verification) OK() bool {
	return !slices.ContainsFunc(v.Differences, func(d Difference) bool { return d.By == ByRestore })
}

// differ compares one item; nil is one that is not there.
func (d *Difference) differ(name string, was, is *string) {
	switch {
	case is == nil:
		d.Missing++
	case was == nil:
		d.Added++
	case *was != *is:
		d.Changed++
	default:
		return
	}
	d.Names = append(d.Names, name)
}

// some reports whether there is a difference at all, and puts its names in
// order.
func (d *Difference) some() bool {
	slices.Sort(d.Names)
	d.Names = slices.Compact(d.Names)
	d.Names = d.Names[:min(len(d.Names), MaxNames)]
	return d.Missing+d.Changed+d.Added > 0
}

// Differ compares a storage area with what it is now. Keys that were added
// count only where it is the site that may have added them.
func (a Area) Differ(is Area, component, by string) (Difference, bool) {
	d := Difference{Component: component, Origin: a.StorageKey, By: by}
	was, now := a.values(), is.values()
	for key, value := range was {
		d.differ(key, value, now[key])
	}
	if by == BySite {
		for key, value := range now {
			if was[key] == nil {
				d.differ(key, nil, value)
			}
		}
	}
	return d, d.some()
}

// DifferSince compares a storage area with what it is now, where had is what of
// it was there after the restore: what of that differs the site has changed, the
// rest did not come back.
func (a Area) DifferSince(had, is Area, component string) []Difference {
	was := had.values()
	lost := a.Only(func(key string) bool { return was[key] == nil })
	missed := lost.values()
	var all []Difference
	if d, some := lost.Differ(is, component, ByRestore); some {
		all = append(all, d)
	}
	if d, some := had.Differ(is.Only(func(key string) bool { return missed[key] == nil }), component, BySite); some {
		all = append(all, d)
	}
	return all
}

// Only gives the area with those of its items alone whose keys are wanted.
func (a Area) Only(wanted func(key string) bool) Area {
	kept := Area{StorageKey: a.StorageKey}
	for _, i := range a.Items {
		if wanted(i.Key) {
			kept.Items = append(kept.Items, i)
		}
	}
	return kept
}

func (a Area) values() map[string]*string {
	values := make(map[string]*string, len(a.Items))
	for i := range a.Items {
		values[a.Items[i].Key] = &a.Items[i].Value
	}
	return values
}

// DifferingCookies compares two jars, domain by domain. A cookie whose time is
// over is not missing.
func DifferingCookies(saved, jar []Cookie, now time.Time, by string) []Difference {
	is := make(map[string]Cookie, len(jar))
	for _, c := range jar {
		is[c.Identity()] = c
	}
	domains := map[string]*Difference{}
	differ := func(c Cookie, was, is *string) {
		d := domains[c.Origin()]
		if d == nil {
			d = &Difference{Component: ComponentCookies, Origin: c.Origin(), By: by}
			domains[c.Origin()] = d
		}
		d.differ(c.Name, was, is)
	}
	known := make(map[string]bool, len(saved))
	for _, c := range saved {
		known[c.Identity()] = true
		if other, there := is[c.Identity()]; there {
			differ(c, &c.Value, &other.Value)
		} else if !c.Expired(now) {
			differ(c, &c.Value, nil)
		}
	}
	for _, c := range jar {
		if by == BySite && !known[c.Identity()] {
			differ(c, nil, &c.Value)
		}
	}
	all := []Difference{}
	for _, d := range domains {
		if d.some() {
			all = append(all, *d)
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.Origin, b.Origin) })
	return all
}
