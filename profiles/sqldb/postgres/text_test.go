package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Every string is stored as text that the server takes, and is read as it was.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain", "Ådå", "\x00", "a\x00b", "\xff\xfe", "\uffff", "\uffff00", "a\uffff", "\ufffd", strings.Repeat("\x00\uffff\xff", 3)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stored := escape(s)
		if !utf8.ValidString(stored) || strings.Contains(stored, "\x00") {
			t.Errorf("%q is stored as %q", s, stored)
		}
		if got := unescape(stored); got != s {
			t.Errorf("%q is read as %q", s, got)
		}
	})
}

func TestNumbered(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT 1":                    "SELECT 1",
		"a = ?":                       "a = $1",
		"(?, ?) " + "? LIMIT ? tail":  "($1, $2) $3 LIMIT $4 tail",
		strings.Repeat("?", 10) + ")": "$1$2$3$4$5$6$7$8$9$10)",
	} {
		if got := numbered(query); got != want {
			t.Errorf("%q became %q", query, got)
		}
	}
}
