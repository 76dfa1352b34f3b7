package state

import (
	"cmp"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"
)

// Basis is what the expected end of a login rests on.
type Basis string

const (
	BasisCookie        Basis = "cookie"         // a persistent cookie's expiry
	BasisSessionCookie Basis = "session_cookie" // has no end of its own: the site's server decides
	BasisJWT           Basis = "jwt"            // the exp claim of a JSON Web Token (RFC 7519)
	BasisToken         Basis = "token"          // a token, with the expiry that its client library noted or with none
	BasisRefreshToken  Basis = "refresh_token"  // renews the login, until its own end if it tells one
)

// Text is the basis in words.
func (b Basis) Text() string { return strings.ReplaceAll(string(b), "_", " ") }

// Login is what a document tells of the login at one site. It holds names and
// never a value.
type Login struct {
	// Site is the registrable domain, or the host where there is none.
	Site string `json:"site"`
	// ExpectedEnd is when the last of what keeps the login ends; nil: not known.
	ExpectedEnd *time.Time `json:"expected_end"`
	Basis       Basis      `json:"basis"`
	Names       []string   `json:"names"` // of the cookies and storage keys, sorted
	Expired     bool       `json:"expired"`
}

// The bounds of what is told of one site.
const (
	maxLoginNames = 16
	maxLoginName  = 256 // bytes
)

// Logins tells for each site that has something like a login when that is
// expected to end, and on what this rests. It is a guess from names and shapes
// (see [Document.Cookies], [Document.Local] and each tab's session storage):
// a site may end a login sooner, and may keep one where no name tells.
func Logins(doc Document, now time.Time) []Login {
	sites := map[string][]credential{}
	add := func(host string, found ...credential) {
		if site := siteOf(host); site != "" && len(found) > 0 {
			sites[site] = append(sites[site], found...)
		}
	}
	for _, c := range doc.Cookies {
		add(c.Origin(), inCookie(c)...)
	}
	areas := slices.Clone(doc.Local)
	for _, tab := range doc.Tabs {
		areas = append(areas, tab.Session...)
	}
	for _, area := range areas {
		for _, item := range area.Items {
			add(hostOf(area.StorageKey), inItem(item)...)
		}
	}
	logins := []Login{}
	for _, site := range slices.Sorted(maps.Keys(sites)) {
		logins = append(logins, judge(site, sites[site]).At(now))
	}
	return logins
}

// At is the login as it stands at a time.
func (l Login) At(now time.Time) Login {
	l.Expired = l.ExpectedEnd != nil && !l.ExpectedEnd.After(now)
	return l
}

// credential is one thing that may keep a login.
type credential struct {
	name  string
	basis Basis
	end   time.Time // zero: not known
}

// judge weighs what one site has. The last known end counts, for any one of
// them may be what keeps the login; but a refresh token that tells no end
// outlasts what it renews, and what has no end of its own counts only where
// nothing else is there.
func judge(site string, found []credential) Login {
	l := Login{Site: site, Names: names(found)}
	rank := func(c credential) int {
		switch {
		case c.basis == BasisRefreshToken && c.end.IsZero():
			return 3
		case !c.end.IsZero():
			return 2
		case c.basis == BasisSessionCookie:
			return 1
		default:
			return 0
		}
	}
	best := slices.MaxFunc(found, func(a, b credential) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.end.Compare(b.end), strings.Compare(string(a.basis), string(b.basis)))
	})
	l.Basis = best.basis
	if !best.end.IsZero() {
		end := best.end.UTC()
		l.ExpectedEnd = &end
	}
	return l
}

func names(found []credential) []string {
	all := make([]string, 0, len(found))
	for _, c := range found {
		name := strings.ToValidUTF8(c.name, "\uFFFD")
		for len(name) > maxLoginName {
			_, size := utf8.DecodeLastRuneInString(name)
			name = name[:len(name)-size]
		}
		all = append(all, name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxLoginNames)]
}

// siteOf is the registrable domain of a host (Public Suffix List), or the host
// itself where it has none: an address, or a name of one label.
func siteOf(host string) string {
	host = strings.ToLower(strings.Trim(host, "."))
	if net.ParseIP(strings.Trim(host, "[]")) != nil {
		return host
	}
	if site, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return site
	}
	return host
}

// hostOf is the host of a storage key, whose partition follows its origin
// behind a "^" (blink::StorageKey).
func hostOf(storageKey string) string {
	origin, _, _ := strings.Cut(storageKey, "^")
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
