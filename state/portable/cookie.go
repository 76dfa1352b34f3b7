package portable

import (
	"net/url"
	"strings"

	"github.com/stasisd/stasis/state"
)

// cookieFields are the fields that [readCookie] reads.
var cookieFields = []string{"name", "value", "url", "domain", "path", "expires", "httpOnly", "secure"}

// maxExpires is the last second that Chrome accepts, in the year 9999.
const maxExpires = 253402300799

// readCookie reads the cookie fields that Playwright and Puppeteer spell alike. domain
// and path, or url, set the cookie's place.
func readCookie(o object) (c state.Cookie, err error) {
	if c.Name, err = o.get("name").text(); err != nil {
		return c, err
	}
	if c.Value, err = o.get("value").text(); err != nil {
		return c, err
	}
	if c.Secure, err = optional(o, "secure", false, node.boolean); err != nil {
		return c, err
	}
	if c.HTTPOnly, err = optional(o, "httpOnly", false, node.boolean); err != nil {
		return c, err
	}
	if c.Path, err = optional(o, "path", "/", node.text); err != nil {
		return c, err
	}
	if c.Expires, err = optional(o, "expires", -1, node.number); err != nil {
		return c, err
	}
	if c.Expires != -1 && (c.Expires < 0 || c.Expires > maxExpires) {
		return c, o.get("expires").wrong("-1 or seconds since 1970")
	}
	c.Session = c.Expires == -1
	switch {
	case o.has("domain"):
		if c.Domain, err = o.get("domain").text(); err == nil {
			err = checkDomain(o.get("domain"), c.Domain)
		}
	case o.has("url"):
		err = placeByURL(o.get("url"), &c)
	default:
		err = invalid("%s: must have a domain or a url", o.path)
	}
	if err == nil && !strings.HasPrefix(c.Path, "/") {
		err = o.get("path").wrong("a path that begins with a slash")
	}
	return c, err
}

func placeByURL(n node, c *state.Cookie) error {
	text, err := n.text()
	if err != nil {
		return err
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return n.wrong("an http or https URL")
	}
	c.Domain, c.Secure = u.Hostname(), c.Secure || u.Scheme == "https"
	return nil
}

func checkDomain(n node, domain string) error {
	if !isDomain(domain) {
		return n.wrong("a host name, with a leading dot for its subdomains too")
	}
	return nil
}

// isDomain reports whether a string can be a cookie's domain: in a URL it must be exactly
// the host.
func isDomain(domain string) bool {
	host := strings.TrimPrefix(domain, ".")
	return host != "" && len(host) <= 255 && !strings.ContainsFunc(host, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`/\?#@%<>"`, r)
	})
}

// loseAttributes counts the cookie attributes that neither a storageState nor a
// cookies.txt has.
func loseAttributes(c state.Cookie, lost *losses) {
	if c.Priority != "" && c.Priority != "Medium" {
		lost.add(priority, "", 1, "the format has no priority")
	}
	if c.SourceScheme == "Secure" && !c.Secure {
		lost.add(source, "", 1, "the format does not say that the cookie came over https")
	}
}
