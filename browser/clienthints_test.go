package browser

import "testing"

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
		if m == nil || m.Platform != x.platform || m.Mobile != x.mobile || m.Brands[1].Version != x.version || m.FullVersionList[1].Version != x.version+".0.0.0" {
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
