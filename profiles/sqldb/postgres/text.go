package postgres

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// mark begins an escaped byte: this noncharacter, and two hexadecimal digits.
const mark = "\uffff"

// escape returns a string as it is stored. The server stores no byte 0 and only valid
// UTF-8, so escape replaces other bytes. Equal strings stay equal.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") && !strings.Contains(s, mark) {
		return s
	}
	const digits = "0123456789abcdef"
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == 0 || r == '\uffff' || r == utf8.RuneError && n == 1 {
			for _, c := range []byte(s[:n]) {
				b.WriteString(mark)
				b.WriteByte(digits[c>>4])
				b.WriteByte(digits[c&15])
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// unescape is the reverse of escape.
func unescape(s string) string {
	before, rest, found := strings.Cut(s, mark)
	if !found {
		return s
	}
	var b strings.Builder
	for b.WriteString(before); found; b.WriteString(before) {
		if len(rest) >= 2 {
			if c, err := strconv.ParseUint(rest[:2], 16, 8); err == nil {
				b.WriteByte(byte(c))
				rest = rest[2:]
			}
		}
		before, rest, found = strings.Cut(rest, mark)
	}
	return b.String()
}

// numbered replaces each "?" by "$1", "$2" and so on. The statements of package sqldb have
// no "?" in a literal.
func numbered(query string) string {
	if !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	for n := 1; ; n++ {
		before, rest, found := strings.Cut(query, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		query = rest
	}
}
