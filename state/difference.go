package state

import (
	"cmp"
	"slices"
	"time"
)

// Values of Difference.By: who made a difference.
const (
	ByRestore = "restore" // it was not restored as it was saved
	BySite    = "site"    // it was restored, and the site has changed it since
)

// MaxNames limits how many names a difference lists.
const MaxNames = 20

// Difference describes how the current state differs from the saved one: the number of
// items, and the first names. It never has values.
type Difference struct {
	Component string   `json:"component"`
	Origin    string   `json:"origin"`
	By        string   `json:"by"`
	Missing   int      `json:"missing"`
	Changed   int      `json:"changed"`
	Added     int      `json:"added"`
	Names     []string `json:"names"` // sorted; names of cookies, keys of storage items
	// More is the number of differences of other origins that are added up in this one.
	More int `json:"more,omitempty"`
}

// Verification is the result of reading a restored environment back.
type Verification struct {
	// Components replace the report's lines with the same name and origin.
	Components  []Component
	Differences []Difference
	Warnings    []string // for people
}

// OK reports whether everything was restored. Later changes by the sites do not count.
func (v Verification) OK() bool {
	return !slices.ContainsFunc(v.Differences, func(d Difference) bool { return d.By == ByRestore })
}

// differ compares one item; nil means that it does not exist.
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

// hasAny reports whether there is any difference, and sorts its names.
func (d *Difference) hasAny() bool {
	slices.Sort(d.Names)
	d.Names = slices.Compact(d.Names)
	d.Names = d.Names[:min(len(d.Names), MaxNames)]
	return d.Missing+d.Changed+d.Added > 0
}

// Differ compares a saved storage area with its current state. Added keys count only if
// by is the site, because a restore adds none.
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
	return d, d.hasAny()
}

// DifferencesSince compares a saved storage area with its current state. had is the area's
// state just after the restore. Differences from had were made by the site; the rest was
// not restored.
func (a Area) DifferencesSince(had, is Area, component string) []Difference {
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

// Only returns the area with those items whose keys are wanted.
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

// DifferingCookies compares two jars, domain by domain. An expired cookie is not missing.
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
		if d.hasAny() {
			all = append(all, *d)
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.Origin, b.Origin) })
	return all
}
