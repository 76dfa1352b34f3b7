package browser

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
)

// An import drops the cookies that Unsettable rejects, so these must be exactly those
// that this Chrome rejects. A domain must be written as Chrome writes it, else an
// existing cookie would be reported as lost.
func TestUnsettableIsWhatChromeRefuses(t *testing.T) {
	r := newRigOfEither(t)
	b := r.fresh()
	x := func(n int) string { return strings.Repeat("x", n) }
	var all []state.Cookie
	add := func(name, value, domain string, change func(*state.Cookie)) {
		c := state.Cookie{Name: name, Value: value, Domain: domain, Path: "/", Session: true, Expires: -1}
		if change != nil {
			change(&c)
		}
		all = append(all, c)
	}
	secure := func(c *state.Cookie) { c.Secure = true }
	hidden := func(c *state.Cookie) { c.Secure, c.HTTPOnly = true, true }
	partitioned := func(c *state.Cookie) { c.Partition = &state.PartitionKey{TopLevelSite: "https://t.example"} }
	for _, domain := range []string{"a.example", ".a.example", "localhost"} {
		add("n", "v", domain, func(c *state.Cookie) { c.SameSite = "None" })
		add("n", "v", domain, func(c *state.Cookie) { c.SameSite, c.SourceScheme = "None", "Secure" })
		add("n", "v", domain, func(c *state.Cookie) { c.SameSite, c.Secure = "None", true })
		add("n", "v", domain, func(c *state.Cookie) { c.Secure, c.SourceScheme = true, "NonSecure" })
		add("n", "v", domain, partitioned)
		add("n", "v", domain, func(c *state.Cookie) { secure(c); partitioned(c) })
		for _, name := range []string{"__Secure-n", "__secure-n", "__Host-n", "__host-n", "__Http-n", "__Host-Http-n"} {
			add(name, "v", domain, nil)
			add(name, "v", domain, secure)
			add(name, "v", domain, hidden)
			add(name, "v", domain, func(c *state.Cookie) { hidden(c); c.Path = "/p" })
		}
	}
	for _, text := range []string{"", " v", "v ", "a b", "a;b", "a=b", "a,b", `"q"`, "a\tb", "a\x01b", "a\x7fb", "\u00fc", "__Host-", "__Secure-a", "__http-a"} {
		add(text, "", "a.example", hidden)
		add("", text, "a.example", hidden)
		add("n", text, "a.example", nil)
	}
	add(x(2048), x(2048), "a.example", nil)
	add(x(2048), x(2049), "a.example", nil)
	for _, path := range []string{"/" + x(1023), "/" + x(1024), "/a;b"} {
		add("n", "v", "a.example", func(c *state.Cookie) { c.Path = path })
	}
	for _, domain := range []string{"com", ".com", ".co.uk", ".github.io", ".localhost", ".intranet", ".a.intranet", ".foo.ck", ".www.ck", ".127.0.0.1", "[::1]", ".[::1]",
		"A.Example", ".A.Example", "b\u00fccher.example", "under_score.example", "a.example."} {
		canonical, narrowed, ok := state.CookieDomain(domain)
		if !ok || narrowed && strings.HasPrefix(canonical, ".") {
			t.Errorf("%s is %s, %t, %t", domain, canonical, narrowed, ok)
		}
		// As in an imported file. The jar then has the canonical domain.
		add("n", "v", domain, nil)
		add("n", "v", canonical, nil)
	}
	for _, c := range all {
		if _, err := apply.Cookies(within(t), b.driver, []state.Cookie{c}, r.Now()); err != nil {
			t.Fatal(err)
		}
		jar, err := capture.Cookies(within(t), b.driver)
		if err != nil {
			t.Fatal(err)
		}
		why := c.Unsettable()
		if taken := len(jar) == 1; taken != (why == "") {
			t.Errorf("%q=%q of %s%s, Secure %t, HttpOnly %t, SameSite %q, from %q, partition %v: accepted %t, Unsettable %q",
				c.Name, c.Value, c.Domain, c.Path, c.Secure, c.HTTPOnly, c.SameSite, c.SourceScheme, c.Partition, taken, why)
		} else if domain, _, _ := state.CookieDomain(c.Domain); taken && jar[0].Domain != domain {
			t.Errorf("%s is %s in the jar, want %s", c.Domain, jar[0].Domain, domain)
		}
	}

	// Pages of an http localhost may set Secure cookies. Chrome stores them with a source
	// scheme with which it refuses to set them again.
	site := newSite(t, nil)
	r.open(b, site.url+"/")
	const mine = "__Host-h=1; below=1; keeps=1; secure=1"
	const cookies = `document.cookie.split("; ").sort().join("; ")`
	if got := r.eval(b, site.url+"/", `for (const c of ["secure=1; Secure", "keeps=1; Secure; max-age=999", "__Host-h=1; Secure; Path=/",
		"below=1; Secure; Partitioned; SameSite=None"]) document.cookie = c; `+cookies); got != mine {
		t.Fatalf("the page could set %s", got)
	}
	jar, err := capture.Cookies(within(t), b.driver)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range jar {
		if c.SourceScheme != "NonSecure" || c.Unsettable() != "" {
			t.Errorf("%s: %s, %q", c.Name, c.SourceScheme, c.Unsettable())
		}
	}
	report, err := apply.Cookies(within(t), b.driver, jar, r.Now())
	if got := r.eval(b, site.url+"/", cookies); err != nil || got != mine {
		t.Errorf("written again: %s, %+v, %v", got, report, err)
	}
}
