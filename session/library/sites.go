package library

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/state"
)

// SavedSite says for a person what a snapshot has of a site with a login. It is the wire
// format.
type SavedSite struct {
	Site        string     `json:"site"`
	ExpectedEnd *time.Time `json:"expected_end"` // see [state.Login]
	Expired     bool       `json:"expired"`
	Saved       []SavedOf  `json:"saved"`
}

// SavedOf is how many items of one kind were saved of a site.
type SavedOf struct {
	Name  string `json:"name"` // of a component, such as cookies
	Items int    `json:"items"`
}

// Sites returns the sites that seem to have a login in the snapshot.
func (s SnapshotInfo) Sites() []SavedSite {
	sites := make([]SavedSite, 0, len(s.Logins))
	for _, l := range s.Logins {
		sites = append(sites, SavedSite{Site: l.Site, ExpectedEnd: l.ExpectedEnd, Expired: l.Expired, Saved: itemsOf(l.Site, s.Components)})
	}
	return sites
}

// itemsOf adds up what the components have of a site and its subdomains.
func itemsOf(site string, components []state.Component) []SavedOf {
	all := []SavedOf{}
	for _, c := range components {
		host := c.Origin
		if at, err := url.Parse(c.Origin); err == nil && at.Host != "" {
			host = at.Hostname()
		}
		host = strings.TrimPrefix(host, ".")
		n := c.Saved - c.Dropped
		if n <= 0 || host != site && !strings.HasSuffix(host, "."+site) {
			continue
		}
		i := slices.IndexFunc(all, func(one SavedOf) bool { return one.Name == c.Name })
		if i < 0 {
			i, all = len(all), append(all, SavedOf{Name: c.Name})
		}
		all[i].Items += n
	}
	return all
}
