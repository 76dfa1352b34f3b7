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

// LoginBasis says what the expected end of a login is derived from.
type LoginBasis string

const (
	BasisCookie        LoginBasis = "cookie"         // the expiry of a persistent cookie
	BasisSessionCookie LoginBasis = "session_cookie" // a session cookie has no expiry; the site's server decides
	BasisJWT           LoginBasis = "jwt"            // the exp claim of a JSON Web Token (RFC 7519)
	BasisToken         LoginBasis = "token"          // a token, with the expiry that its client library stored, or without one
	BasisRefreshToken  LoginBasis = "refresh_token"  // renews the login, until its own expiry if it has one
)

// Text returns the basis in words.
func (b LoginBasis) Text() string { return strings.ReplaceAll(string(b), "_", " ") }

// Login describes the login at one site, as a document shows it. It holds names and never
// a value.
type Login struct {
	// Site is the registrable domain, or the host if there is none.
	Site string `json:"site"`
	// ExpectedEnd is when the last credential of the login expires; nil if not known.
	ExpectedEnd *time.Time `json:"expected_end"`
	Basis       LoginBasis `json:"basis"`
	Names       []string   `json:"names"` // names of cookies and storage keys, sorted
	Expired     bool       `json:"expired"`
}

// Limits of a Login.
const (
	maxLoginNames = 16
	maxLoginName  = 256 // bytes
)

// Logins returns, for each site that seems to have a login, when the login is expected to
// end and why. It guesses from names and shapes in [Document.Cookies], [Document.Local]
// and each tab's session storage. A site may end a login sooner, and may keep a login
// that no name reveals.
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
		logins = append(logins, loginOf(site, sites[site]).At(now))
	}
	return logins
}

// At returns the login as it stands at a time.
func (l Login) At(now time.Time) Login {
	l.Expired = l.ExpectedEnd != nil && !l.ExpectedEnd.After(now)
	return l
}

// credential is one item that may keep a login.
type credential struct {
	name  string
	basis LoginBasis
	end   time.Time // zero if not known
}

// loginOf returns the login of one site. The latest known end counts, because any
// credential may be the one that keeps the login. But a refresh token without an expiry
// outlasts the tokens that it renews. A credential without an expiry counts only if there
// is no other.
func loginOf(site string, found []credential) Login {
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

// siteOf returns a host's registrable domain (Public Suffix List). For an address or a
// name with one label it returns the host itself.
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

// hostOf returns the host of a storage key. In the key, "^" separates the partition from
// the origin (blink::StorageKey).
func hostOf(storageKey string) string {
	origin, _, _ := strings.Cut(storageKey, "^")
	u, err := url.Parse(origin)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
