//go:build !stasis_no_blocklist

package profile

// blockedURLs lists the addresses that full Chrome refuses to navigate to, in every tab
// and frame, for every caller. It is the value of the preference policy.url_blocklist, in
// the syntax of Chrome's URLBlocklist policy. Seen with Chromium 156: chrome://* does not
// affect extensions, the PDF viewer or DevTools' own protocol. With the PDF viewer's
// address in the list, Chrome shows no PDF. file://* also covers view-source: of files.
// The headless shell does not know the preference.
//
// The build tag stasis_no_blocklist leaves the list out, for tests of the other
// protections of the machine's files.
func blockedURLs() []string {
	return []string{"file://*", "chrome://*", "devtools://*"}
}
