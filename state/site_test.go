package state_test

import (
	"testing"

	"github.com/stasisd/stasis/state"
)

func TestSite(t *testing.T) {
	for of, want := range map[string]string{
		"https://www.a.example:8443/path?q": "https://a.example",
		"http://a.example":                  "http://a.example",
		"https://x.y.co.uk/":                "https://y.co.uk",
		"https://co.uk/":                    "https://co.uk",
		"https://me.github.io/":             "https://me.github.io",
		"http://127.0.0.1:8080/":            "http://127.0.0.1",
		"http://[::1]:8080/":                "http://[::1]",
		"http://LOCALHOST:1/":               "http://localhost",
		"about:blank":                       "",
		"":                                  "",
		"%zz":                               "",
		"data:text/html,x":                  "",
	} {
		if got := state.Site(of); got != want {
			t.Errorf("%s: %s, not %s", of, got, want)
		}
	}
}
