package browser

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/emulation"
)

// chromeVersion finds the version that a Chrome's User-Agent tells.
var chromeVersion = regexp.MustCompile(`\b(?:Headless)?Chrome/((\d+)[\d.]*)`)

// clientHints are the User-Agent Client Hints (Sec-CH-UA, and what
// navigator.userAgentData says) of the Chrome that a User-Agent tells of; nil,
// with which Chrome sends none, where it tells of another browser.
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

// brands are the brand lists of a Chrome of a version: "Chromium" and the
// product, where that is another, among them a made-up one. What that is called
// and in which order they stand follows from the major version (Chromium's
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

// platformOf is what Chrome calls a User-Agent's system, and a version where
// one can be told (User-Agents of Chrome are frozen in this).
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
