package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

func has(list []*emulation.UserAgentBrandVersion, brand, version string) bool {
	return slices.ContainsFunc(list, func(b *emulation.UserAgentBrandVersion) bool { return b.Brand == brand && b.Version == version })
}

func TestClientHintsFollowTheUserAgent(t *testing.T) {
	for _, x := range []struct {
		agent, platform, version string
		mobile                   bool
	}{
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36", "Windows", "150", false},
		{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/9.0.0.0 Safari/537.36", "macOS", "9", false},
		{"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Mobile Safari/537.36", "Android", "156", true},
		{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36", "Linux", "156", false},
	} {
		m := clientHints(x.agent)
		if m == nil || m.Platform != x.platform || m.Mobile != x.mobile || !has(m.Brands, "Chromium", x.version) || !has(m.FullVersionList, "Google Chrome", x.version+".0.0.0") {
			t.Errorf("%s: %+v", x.agent, m)
		}
	}
	for _, other := range []string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0", "mine/1",
		"Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36 Edg/150.0.0.0",
	} {
		if m := clientHints(other); m != nil {
			t.Errorf("%s: %+v", other, m)
		}
	}
}

// The lists as those Chromium versions sent them.
func TestBrandsAreThoseOfTheVersion(t *testing.T) {
	for _, x := range []struct{ product, major, want string }{
		{"Google Chrome", "124", `"Chromium";v="124", "Google Chrome";v="124", "Not-A.Brand";v="99"`},
		{"Google Chrome", "131", `"Google Chrome";v="131", "Chromium";v="131", "Not_A Brand";v="24"`},
		{"Chromium", "156", `"Not:A-Brand";v="8", "Chromium";v="156"`},
	} {
		var got []string
		short, _ := brands(x.product, x.major, x.major+".0.0.0")
		for _, b := range short {
			got = append(got, fmt.Sprintf("%q;v=%q", b.Brand, b.Version))
		}
		if strings.Join(got, ", ") != x.want {
			t.Errorf("%s %s: %s", x.product, x.major, got)
		}
	}
}
