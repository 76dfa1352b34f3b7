//go:build stasis_no_blocklist

package profile

// blockedURLs is empty: this build is for tests.
func blockedURLs() []string { return nil }
