package mux

import (
	"fmt"
	"strings"
)

func urlIn(name string) func(*call) error {
	return func(c *call) error {
		var url string
		if err := c.params.get(name, &url); err != nil {
			return err
		}
		return checkURL(url, c.owns)
	}
}

// checkURL returns why a client may not open an address; nil if it may. The empty address
// stands for about:blank. owns reports whether an extension is one of the session's.
func checkURL(url string, owns func(extension string) bool) error {
	rest := strip(url)
	if rest == "" {
		return nil
	}
	inner, source := rest, false
	if scheme(rest) == "view-source" {
		inner, source = strip(rest[len("view-source:"):]), true
	}
	switch s := scheme(inner); s {
	case "http", "https":
		return nil
	case "data", "javascript", "ws", "wss":
		if !source {
			return nil
		}
		return fmt.Errorf("view-source: cannot show %s: addresses", s)
	case "blob":
		// A blob belongs to the origin that its address contains.
		of := inner[len("blob:"):]
		if source || scheme(of) != "" && checkURL(of, owns) != nil {
			return fmt.Errorf("blob: addresses must belong to an origin that may be opened")
		}
		return nil
	case "chrome-extension":
		rest, found := strings.CutPrefix(inner[len("chrome-extension:"):], "//")
		id, _, _ := strings.Cut(rest, "/")
		if source || !found || TargetPolicy && !owns(id) {
			return fmt.Errorf("chrome-extension: addresses must belong to the session's own extensions")
		}
		return nil
	case "about":
		what, _, _ := strings.Cut(strings.ToLower(inner[len("about:"):]), "#")
		what, _, _ = strings.Cut(what, "?")
		if !source && (what == "blank" || what == "srcdoc") {
			return nil
		}
		return fmt.Errorf("about: only about:blank can be opened")
	case "":
		return fmt.Errorf("the address has no scheme")
	default:
		return fmt.Errorf("%s: addresses cannot be opened", s)
	}
}

// scheme returns an address's scheme in lower case, or "" if it has none. It finds the
// scheme as a browser's URL parser does (WHATWG URL, "scheme state").
func scheme(url string) string {
	url = strip(url)
	for i := 0; i < len(url); i++ {
		switch c := url[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			return strings.ToLower(url[:i])
		default:
			return ""
		}
	}
	return ""
}

// strip applies the first steps of a URL parser: it removes controls and spaces at both
// ends, and tabs and line ends everywhere.
func strip(url string) string {
	url = strings.TrimFunc(url, func(r rune) bool { return r <= ' ' })
	if !strings.ContainsAny(url, "\t\n\r") {
		return url // the common case; creating a replacer costs more than all other work on a message
	}
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(url)
}
