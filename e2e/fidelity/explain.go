package main

import "strings"

// explanations are the sentences that the page shows in place of raw readings and errors.
// An explanation applies if the detail of a cell contains raw. Only kinds whose names
// begin with kind are meant.
var explanations = []struct{ kind, raw, text string }{
	{"", "Failed to read the 'localStorage' property",
		"Chrome gave the third-party frame no localStorage in this tool's browser, so there was nothing to save (SecurityError)."},
	{"", "Failed to read the 'sessionStorage' property",
		"Chrome gave the third-party frame no sessionStorage in this tool's browser, so there was nothing to save (SecurityError)."},
	{"IndexedDB of a third-party frame", "The user denied permission",
		"Chrome gave the third-party frame no database in this tool's browser, so there was nothing to save (UnknownError)."},
	{"… separate from the site's own localStorage", "itself: own, in the frame: , was",
		"The site's own value is restored. The frame's value is missing."},
	{"IndexedDB: auto-increment", "3, was 6",
		"The next key is 3; before the save it was 6. The counter continues after the highest key that is left."},
	{"IndexedDB: Blob", "(reading 'blob')",
		"The record is missing, because the format has no Blob and no File."},
	{"IndexedDB: Blob", "v.blob.text is not a function",
		"The record is restored, but its Blob is no longer a Blob."},
	{"IndexedDB: a non-extractable CryptoKey", "(reading 'extractable')",
		"The record is missing, because the format has no CryptoKey."},
	{"IndexedDB: a non-extractable CryptoKey", "is not of type 'CryptoKey'",
		"The record is restored, but its CryptoKey is no longer a CryptoKey."},
	{"override: proxy", "http://open.localhost/: net::ERR_CONNECTION_REFUSED",
		"The page does not load: the restored browser does not use the proxy (ERR_CONNECTION_REFUSED)."},
	{"override: proxy", "http://guarded.localhost/: net::ERR_CONNECTION_REFUSED",
		"The page does not load: the restored browser does not use the proxy with the password (ERR_CONNECTION_REFUSED)."},
	{"override: proxy", "http://guarded.localhost/: net::ERR_INVALID_AUTH_CREDENTIALS",
		"The page did not load before the save either: the proxy did not get its password (ERR_INVALID_AUTH_CREDENTIALS)."},
	{"passkey", "signal timed out",
		"The site's request for the passkey had no answer within 5 s."},
	{"passkey", "NotAllowedError",
		"The restored browser does not have the passkey, so it refuses the site's request (NotAllowedError)."},
	{"… their back/forward lists", "1 about:blank ",
		"The list has only the open page and a blank one before it. The other pages of the list are missing."},
	{"sessionStorage: a lone surrogate in a value", "\"\ufffd",
		"The value is restored with U+FFFD in place of the lone surrogate."},
}

// explain returns the sentence for the detail of a kind's cell. A detail that has no
// explanation is returned unchanged.
func explain(kind, why string) string {
	for _, e := range explanations {
		if strings.HasPrefix(kind, e.kind) && strings.Contains(why, e.raw) {
			return e.text
		}
	}
	return why
}
