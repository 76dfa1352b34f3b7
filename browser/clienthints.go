package browser

import (
	"regexp"
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
	for _, brand := range []struct{ name, major, full string }{
		{"Not:A-Brand", "8", "8.0.0.0"}, {"Chromium", v[2], v[1]}, {"Google Chrome", v[2], v[1]},
	} {
		m.Brands = append(m.Brands, &emulation.UserAgentBrandVersion{Brand: brand.name, Version: brand.major})
		m.FullVersionList = append(m.FullVersionList, &emulation.UserAgentBrandVersion{Brand: brand.name, Version: brand.full})
	}
	return m
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
