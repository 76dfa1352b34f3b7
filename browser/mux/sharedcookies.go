package mux

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// cookie is what identifies a cookie, and its value.
type cookie struct {
	Name   string `json:"name"`
	Domain string `json:"domain"`
	URL    string `json:"url"`
	Path   string `json:"path"`
	Value  string `json:"value"`
	// Expires is in seconds; nil or negative: with the browser. Chrome deletes a cookie that is set
	// with 0 (Chromium 156), and Playwright's clearCookies({name}) does that.
	Expires *float64 `json:"expires"`
	Secure  bool     `json:"secure"`
}

// plainURL matches the addresses whose host everybody reads alike.
var plainURL = regexp.MustCompile(`^(?i:https?)://([A-Za-z0-9.-]+)(?::[0-9]*)?(?:/|$)`)

var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// host returns the host of a cookie, in lower case, and whether subdomains get it too. For a host
// that Chrome could read in another way, it returns "".
func (c cookie) host() (host string, subdomains bool) {
	host = strings.ToLower(c.Domain)
	if host == "" {
		if url := plainURL.FindStringSubmatch(c.URL); url != nil {
			return strings.ToLower(url[1]), false
		}
		return "", false
	}
	if !plainHost.MatchString(host) {
		return "", false
	}
	return strings.CutPrefix(host, ".")
}

// changes reports whether c would change what sites get of the cookie that is there: replace,
// delete or shorten it, or come before it in requests.
func (c cookie) changes(is cookie, deletes bool) bool {
	if c.Name != is.Name {
		return false
	}
	if !deletes && c.Value == is.Value && !c.endsBefore(is) && (is.Secure || !c.Secure) {
		return false
	}
	host, sub := c.host()
	other, otherSub := is.host()
	switch {
	case host == "" || other == "" || host == other:
	case sub && strings.HasSuffix(other, "."+host), otherSub && strings.HasSuffix(host, "."+other):
	default:
		return false
	}
	if c.Path == "" && deletes {
		return true // of any path
	}
	return strings.HasPrefix(is.path(), c.path()) || strings.HasPrefix(c.path(), is.path())
}

// endsBefore reports whether c expires before the cookie that is there. Clients round the time to
// seconds.
func (c cookie) endsBefore(is cookie) bool {
	return c.Expires != nil && *c.Expires >= 0 && (is.Expires == nil || *is.Expires <= 0 || *c.Expires < *is.Expires-1)
}

// path returns the path of a cookie. Without one, Chrome takes / (Chromium 156).
func (c cookie) path() string {
	if c.Path == "" {
		return "/"
	}
	return c.Path
}

// addedCookies are cookies that were not in the profile when a client with shared contexts set
// them. Such clients may change them. Its methods are safe for concurrent use.
type addedCookies struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]struct{}
}

// maxAddedCookies bounds what addedCookies remembers. Later cookies cannot be changed.
const maxAddedCookies = 4096

// identity is the hash of a cookie. If a site has changed its value, it is another one.
func (c cookie) identity() [sha256.Size]byte {
	host, _ := c.host()
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.Name, host, c.path(), c.Value))
}

func (a *addedCookies) has(is cookie) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, added := a.all[is.identity()]
	return added
}

// add records cookies that a client sets, except those of the profile.
func (a *addedCookies) add(set []cookie, profile map[string][]cookie) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range set {
		host, _ := c.host()
		own := slices.ContainsFunc(profile[c.Name], func(is cookie) bool {
			_, added := a.all[is.identity()]
			return !added && is.identity() == c.identity()
		})
		if host == "" || own || len(a.all) >= maxAddedCookies {
			continue
		}
		if a.all == nil {
			a.all = map[[sha256.Size]byte]struct{}{}
		}
		a.all[c.identity()] = struct{}{}
	}
}
