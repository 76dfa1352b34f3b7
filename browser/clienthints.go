package browser

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/emulation"
)

// chromeVersion finds Chrome's version in a User-Agent.
var chromeVersion = regexp.MustCompile(`\b(?:Headless)?Chrome/((\d+)[\d.]*)`)

// clientHints returns the User-Agent Client Hints (Sec-CH-UA and navigator.userAgentData)
// that match a User-Agent of Chrome. It returns nil for other browsers, and Chrome then
// sends no hints.
func clientHints(userAgent string) *emulation.UserAgentMetadata {
	v := chromeVersion.FindStringSubmatch(userAgent)
	if v == nil || strings.Contains(userAgent, "Edg/") || strings.Contains(userAgent, "OPR/") {
		return nil
	}
	m := &emulation.UserAgentMetadata{Mobile: strings.Contains(userAgent, "Mobile"), Architecture: "x86", Bitness: "64"}
	m.Platform, m.PlatformVersion = platformOf(userAgent)
	if m.Mobile {
		m.Architecture, m.Bitness = "", ""
	}
	m.Brands, m.FullVersionList = brands("Google Chrome", v[2], v[1])
	return m
}

// brands returns the brand lists of a Chrome version, with major and full versions. A
// list holds "Chromium", the product if it has another name, and a made-up brand. The
// made-up name and the order follow from the major version (Chromium's
// components/embedder_support/user_agent_utils.cc).
func brands(product, major, full string) (short, long []*emulation.UserAgentBrandVersion) {
	seed, err := strconv.Atoi(major)
	if err != nil {
		return nil, nil
	}
	signs := []string{" ", "(", ":", "-", ".", "/", ")", ";", "=", "?", "_"}
	grease := "Not" + signs[seed%len(signs)] + "A" + signs[(seed+1)%len(signs)] + "Brand"
	version := []string{"8", "99", "24"}[seed%3]
	names := []string{grease, "Chromium", product}
	order := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}[seed%6]
	if product == "Chromium" {
		names, order = names[:2], []int{seed % 2, (seed + 1) % 2}
	}
	short = make([]*emulation.UserAgentBrandVersion, len(names))
	long = make([]*emulation.UserAgentBrandVersion, len(names))
	for i, name := range names {
		a, b := major, full
		if i == 0 {
			a, b = version, version+".0.0.0"
		}
		short[order[i]] = &emulation.UserAgentBrandVersion{Brand: name, Version: a}
		long[order[i]] = &emulation.UserAgentBrandVersion{Brand: name, Version: b}
	}
	return short, long
}

// platformOf returns Chrome's name for the operating system in a User-Agent, and its
// version if known. Chrome's User-Agents are frozen in this respect.
func platformOf(userAgent string) (name, version string) {
	for _, p := range []struct{ sign, name, version string }{
		{"Windows NT", "Windows", "10.0.0"}, {"Android", "Android", ""}, {"CrOS", "Chrome OS", ""},
		{"Macintosh", "macOS", "10.15.7"}, {"Linux", "Linux", ""},
	} {
		if strings.Contains(userAgent, p.sign) {
			return p.name, p.version
		}
	}
	return "", ""
}
