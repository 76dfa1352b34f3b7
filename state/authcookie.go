package state

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Words in a cookie's name. A clear word is enough. The other words also occur in many
// names that have nothing to do with logins, so they count only if scripts cannot read
// the cookie.
var (
	clearWords = []string{"auth", "token", "jwt", "login", "logged"}
	faintWords = []string{"sess", "identity", "remember", "aspnetcore", "sso"}
	// Words in names that match the lists above but keep no login: protection against
	// request forgery, steps of a login in progress, and statistics.
	otherWords = []string{"csrf", "xsrf", "antiforgery", "nonce", "pkce", "verifier", "oauthstate", "authstate",
		"lastlogin", "loginhint", "attempt", "redirect", "anon", "guest", "consent", "hjsession", "amplitude", "optimizely", "stripe", "analytics"}
	// Known names without such a word: DokuWiki, LinkedIn, Facebook.
	ownName = regexp.MustCompile(`^(dw[0-9a-f]{32}|liat|cuser|xs)$`)
	// Syncthing: the short ID of its device. Scripts can read this cookie.
	deviceSession = regexp.MustCompile(`^sessionid-[A-Z2-7]{5,7}$`)
	// Values that mean that no user is logged in.
	noValues = []string{"", "no", "false", "0", "null", "deleted"}
)

// inCookie returns a credential if a cookie looks like one that keeps a login.
func inCookie(c Cookie) []credential {
	var expiry time.Time
	if !c.Session && c.Expires > 0 && c.Expires < latestEnd {
		expiry = time.Unix(int64(c.Expires), 0)
	}
	if end, ok := jwtEnd(c.Value); ok && !isOther(c.Name) {
		if !expiry.IsZero() && expiry.Before(end) {
			end = expiry
		}
		if renews(c.Name) {
			return []credential{{c.Name, BasisRefreshToken, end}}
		}
		return []credential{{c.Name, BasisJWT, end}}
	}
	switch {
	case slices.Contains(noValues, c.Value) || !isAuthName(c):
		return nil
	case c.Session:
		return []credential{{c.Name, BasisSessionCookie, time.Time{}}}
	case renews(c.Name):
		return []credential{{c.Name, BasisRefreshToken, expiry}}
	default:
		return []credential{{c.Name, BasisCookie, expiry}}
	}
}

func isAuthName(c Cookie) bool {
	name := plain(c.Name)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}
	return !has(otherWords) && (has(clearWords) || ownName.MatchString(name) || deviceSession.MatchString(c.Name) || c.HTTPOnly && (has(faintWords) || strings.HasSuffix(name, "sid")))
}

func isOther(name string) bool {
	name = plain(name)
	return slices.ContainsFunc(otherWords, func(w string) bool { return strings.Contains(name, w) })
}

// plain returns a name in lower case, reduced to letters and digits.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// AuthCookies returns the values of cookies that look like logins, by cookie identity.
func AuthCookies(jar []Cookie) map[string]string {
	found := map[string]string{}
	for _, c := range jar {
		if len(inCookie(c)) > 0 {
			found[c.Identity()] = c.Value
		}
	}
	return found
}
