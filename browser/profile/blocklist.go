//go:build !stasis_no_blocklist

package profile

// blockedURLs are the addresses that full Chrome refuses to navigate to, in any tab
// or frame and whoever asks: the preference policy.url_blocklist, in the syntax of
// Chrome's URLBlocklist policy. Seen with Chromium 156: chrome://* leaves extensions,
// the PDF viewer and DevTools' own protocol alone; a list with the PDF viewer's
// address shows no PDF any more; file://* holds for view-source: of files too.
// The headless shell does not know the preference.
//
// The build tag stasis_no_blocklist leaves the list out, for tests of what else
// protects the machine's files.
func blockedURLs() []string {
	return []string{"file://*", "chrome://*", "devtools://*"}
}
