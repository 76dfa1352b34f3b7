package state

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// Change is what differs between two documents in one kind of state of one
// origin: names, and values where they were asked for.
type Change struct {
	Name    string   `json:"name"`   // a component, as in the reports
	Origin  string   `json:"origin"` // "" where the kind has none
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	// Before and After count what lies on disk, which is known by number alone.
	Before int `json:"before"`
	After  int `json:"after"`
	// Values has the values of what is named, by name.
	Values map[string]Values `json:"values,omitempty"`
}

// Values are those of one name: "" where there was or is none.
type Values struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// Diff tells what changed from one document to another, by component and
// origin, sorted. Names are those of cookies, storage items and tabs; a tab's is
// its URL without query and fragment, which may be secret. Values are given
// only if asked for.
func Diff(before, after Document, values bool) []Change {
	old, new := named(before), named(after)
	places := map[place]bool{}
	for _, side := range []map[place]map[string]thing{old, new} {
		for p := range side {
			places[p] = true
		}
	}
	changes := []Change{}
	for p := range places {
		if c := compare(p, old[p], new[p], values); len(c.Added)+len(c.Removed)+len(c.Changed) > 0 {
			changes = append(changes, c)
		}
	}
	changes = append(changes, counted(before, after)...)
	if names := after.Overrides.Differ(before.Overrides); len(names) > 0 {
		// Never their values: a proxy's password is one.
		changes = append(changes, Change{Name: ComponentOverrides, Added: []string{}, Removed: []string{}, Changed: names,
			Before: len(before.Overrides.Names()), After: len(after.Overrides.Names())})
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Origin, b.Origin)) })
	return changes
}

// place is where a name belongs.
type place struct{ component, origin string }

// thing is what is compared under a name, and what of it is its value.
type thing struct{ whole, value string }

func compare(p place, old, new map[string]thing, values bool) Change {
	c := Change{Name: p.component, Origin: p.origin, Added: []string{}, Removed: []string{}, Changed: []string{}, Before: len(old), After: len(new)}
	all := maps.Clone(old)
	if all == nil {
		all = map[string]thing{}
	}
	maps.Copy(all, new)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := old[name]
		is, has := new[name]
		switch {
		case !had:
			c.Added = append(c.Added, name)
		case !has:
			c.Removed = append(c.Removed, name)
		case was.whole != is.whole:
			c.Changed = append(c.Changed, name)
		default:
			continue
		}
		if values {
			if c.Values == nil {
				c.Values = map[string]Values{}
			}
			c.Values[name] = Values{Before: was.value, After: is.value}
		}
	}
	return c
}

// named are the names of a document's state, by where they belong. Of several
// that bear one name, such as the items of two tabs, the later have a number.
func named(doc Document) map[place]map[string]thing {
	all := map[place]map[string]thing{}
	add := func(component, origin, name, whole, value string) {
		p := place{component, origin}
		if all[p] == nil {
			all[p] = map[string]thing{}
		}
		for free, n := name, 2; ; n++ {
			if _, taken := all[p][free]; !taken {
				all[p][free] = thing{whole, value}
				return
			}
			free = name + " (" + strconv.Itoa(n) + ")"
		}
	}
	for _, c := range doc.Cookies {
		name := c.Name
		if c.Path != "/" {
			name += " at " + c.Path
		}
		if c.Partition != nil {
			name += " below " + c.Partition.TopLevelSite
		}
		add(ComponentCookies, c.Origin(), name, c.attributes(), c.Value)
	}
	items := func(component string, areas []Area) {
		for _, area := range areas {
			for _, i := range area.Items {
				add(component, area.StorageKey, i.Key, i.Value, i.Value)
			}
		}
	}
	items(ComponentLocalStorage, doc.Local)
	for _, tab := range doc.Tabs {
		add(ComponentTabs, originOf(tab.URL), shortURL(tab.URL), tab.URL, tab.URL)
		items(ComponentSessionStorage, tab.Session)
		if tab.Name != "" {
			add(ComponentWindowName, originOf(tab.URL), shortURL(tab.URL), tab.Name, tab.Name)
		}
	}
	return all
}

// attributes is all of a cookie that a site decides, in one string.
func (c Cookie) attributes() string {
	return strconv.Quote(c.Value) + strconv.FormatFloat(c.Expires, 'f', 0, 64) + c.SameSite + c.Priority + c.Domain +
		strconv.FormatBool(c.HTTPOnly) + strconv.FormatBool(c.Secure) + strconv.FormatBool(c.Session)
}

// shortURL is an address without what may be secret in it.
func shortURL(of string) string {
	u, err := url.Parse(of)
	switch {
	case err != nil:
		return "an address that is no URL"
	case u.Opaque != "" && u.Scheme != "about":
		return u.Scheme + ":" // data: and the like
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// counted compares what was counted on disk alone.
func counted(before, after Document) []Change {
	counts := map[place][2]int{}
	for side, doc := range [2]Document{before, after} {
		for _, h := range doc.Inventory {
			if !overCDP(doc, h) {
				p := place{h.Component, h.Origin}
				n := counts[p]
				n[side] += h.Items
				counts[p] = n
			}
		}
	}
	var changes []Change
	for p, n := range counts {
		if n[0] != n[1] {
			changes = append(changes, Change{Name: p.component, Origin: p.origin, Added: []string{}, Removed: []string{}, Changed: []string{}, Before: n[0], After: n[1]})
		}
	}
	return changes
}
