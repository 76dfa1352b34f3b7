package events

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// What is masked. In addresses: userinfo, values with the names of secrets, and anything
// that looks like a token, in path, query and fragment. In other text: headers with
// credentials, values after such names, and tokens of known shapes. A false match costs a
// reader a word. Readers with the right to secrets get the whole text.

// mask replaces what is masked.
const mask = "***"

const (
	// maxNested is how deep addresses inside values of addresses are searched. maxEscaped
	// is how often a value may be percent-encoded. Anything deeper is masked without a
	// search. So masking takes time in proportion to a text's length times these limits,
	// whatever a page writes.
	maxNested  = 2
	maxEscaped = 3
)

var (
	address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>` + "`" + `\\]+`)
	inline  = regexp.MustCompile(`(?i)\bdata:[^\s"'<>,]*,[^\r\n]+`)
	// header matches headers whose whole value is a secret, up to the end of the line.
	header = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie2?)(["']?\s*[:=]\s*)[^\r\n]+`)
	scheme = regexp.MustCompile(`(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{6,}`)
	named  = regexp.MustCompile(`([A-Za-z0-9_.\-\[\]]+)(["']?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'})\]]+)`)
	// shaped matches tokens anywhere: JSON Web Tokens, and the API keys of Stasis and of
	// common services.
	shaped = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\bstasis_[A-Z2-7]{20,}|\b(?:gh[opusr]_|github_pat_|glpat-|xox[a-z]-|sk-|AKIA|AIza)[A-Za-z0-9_-]{12,}`)
	uuidOf = regexp.MustCompile(`(?i)^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	tokens = regexp.MustCompile(`^[A-Za-z0-9_\-.~+=%]{24,}$`)
)

// maskFields masks the strings of an event, and reports whether it masked any.
func maskFields(data Fields) (Fields, bool) {
	out, found := make(Fields, len(data)), false
	for name, value := range data {
		switch v := value.(type) {
		case string:
			if name != imageField {
				masked := Mask(v)
				value, found = masked, found || masked != v
			}
		case json.RawMessage:
			masked := MaskJSON(v)
			value, found = masked, found || !bytes.Equal(masked, v)
		case map[string]any, []any:
			masked, changed := maskValue(name, v)
			value, found = masked, found || changed
		}
		out[name] = value
	}
	return out, found
}

// MaskJSON masks the strings of a JSON value, and values with the names of secrets. It does
// not change JSON without secrets. It masks all of what is not JSON.
func MaskJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	var value any
	read := json.NewDecoder(bytes.NewReader(raw))
	read.UseNumber()
	if err := read.Decode(&value); err != nil {
		return json.RawMessage(`"` + mask + `"`)
	}
	masked, changed := maskValue("", value)
	if !changed {
		return raw
	}
	out, err := json.Marshal(masked)
	if err != nil {
		return json.RawMessage(`"` + mask + `"`)
	}
	return out
}

// maskValue masks a parsed JSON value that has a name in its object; "": none. It reports
// whether it masked anything.
func maskValue(name string, value any) (any, bool) {
	switch v := value.(type) {
	case string:
		if v != "" && secretName(name) {
			return mask, true
		}
		masked := Mask(v)
		return masked, masked != v
	case json.Number, float64:
		if secretName(name) {
			return mask, true
		}
	case []any:
		out, found := make([]any, len(v)), false
		for i, item := range v {
			masked, changed := maskValue(name, item)
			out[i], found = masked, found || changed
		}
		return out, found
	case map[string]any:
		out, found := make(map[string]any, len(v)), false
		for key, item := range v {
			masked, changed := maskValue(key, item)
			out[key], found = masked, found || changed
		}
		return out, found
	}
	return value, false
}

// Mask masks the secrets in a text, as far as they can be recognised. It takes time in
// proportion to the text's length, whatever the text contains.
func Mask(text string) string { return maskText(text, maxNested) }

// maskText masks a text, and addresses nested in it to the given depth.
func maskText(text string, nested int) string {
	text = address.ReplaceAllStringFunc(text, func(s string) string { return maskAddress(s, nested) })
	text = inline.ReplaceAllStringFunc(text, func(s string) string { return s[:strings.IndexByte(s, ',')+1] + mask })
	text = header.ReplaceAllString(text, "${1}${2}"+mask)
	text = scheme.ReplaceAllString(text, "${1}${2}"+mask)
	text = named.ReplaceAllStringFunc(text, func(s string) string {
		part := named.FindStringSubmatch(s)
		if !secretName(part[1]) {
			return s
		}
		return part[1] + part[2] + mask
	})
	return shaped.ReplaceAllString(text, mask)
}

// maskAddress masks the secrets of an address, well-formed or not.
func maskAddress(s string, nested int) string {
	head, rest, _ := strings.Cut(s, "://")
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	host, path, hasPath := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = mask + host[at:]
	}
	out := head + "://" + host
	if hasPath {
		out += "/" + maskPath(path, nested)
	}
	if hasQuery {
		out += "?" + maskQuery(query, nested)
	}
	if hasFragment {
		out += "#" + maskFragment(fragment, nested)
	}
	return out
}

// maskFragment masks what follows a #: applications put paths and queries there, and
// logins put tokens there.
func maskFragment(s string, nested int) string {
	path, query, has := strings.Cut(s, "?")
	if !has && strings.Contains(s, "=") {
		return maskQuery(s, nested)
	}
	if !has {
		return maskPath(path, nested)
	}
	return maskPath(path, nested) + "?" + maskQuery(query, nested)
}

// maskPath masks the parts of a path that look like tokens, as in links for a password
// reset, and the values of parameters in it (;jsessionid=…).
func maskPath(path string, nested int) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		whole, params, has := strings.Cut(part, ";")
		if looksSecret(whole) {
			whole = mask
		}
		if has {
			whole += ";" + maskQuery(params, nested)
		}
		parts[i] = whole
	}
	return strings.Join(parts, "/")
}

// maskQuery masks secret values in a query.
func maskQuery(query string, nested int) string {
	var out strings.Builder
	for query != "" {
		end := strings.IndexAny(query, "&;")
		pair, sep := query, ""
		if end >= 0 {
			pair, sep = query[:end], query[end:end+1]
		}
		query = query[len(pair)+len(sep):]
		name, value, has := strings.Cut(pair, "=")
		switch {
		case has && value != "" && (secretName(unescaped(name)) || secretValue(value, nested)):
			pair = name + "=" + mask
		case !has && secretValue(name, nested):
			pair = mask
		}
		out.WriteString(pair + sep)
	}
	return out.String()
}

// secretValue reports whether a value must be masked: a token, or an address with
// secrets. An address is searched in two forms, because either may hide what the other
// shows: as it first becomes visible, and fully decoded.
func secretValue(value string, nested int) bool {
	if value == mask {
		return false
	}
	seen := "" // the value in the form in which an address first becomes visible
	for range maxEscaped + 1 {
		plain := unescaped(value)
		if looksSecret(plain) || shaped.MatchString(plain) {
			return true
		}
		if seen == "" && address.MatchString(value) {
			seen = value
		}
		if plain != value {
			value = plain
			continue
		}
		return seen != "" && (nested == 0 || maskText(seen, nested-1) != seen || seen != value && maskText(value, nested-1) != value)
	}
	return true
}

// looksSecret reports whether a part of an address looks like a token: long, with letters
// and digits. UUIDs are excluded, because most are IDs.
func looksSecret(s string) bool {
	s = unescaped(s)
	return tokens.MatchString(s) && strings.ContainsAny(s, "0123456789") && strings.ContainsFunc(s, isLetter) &&
		!uuidOf.MatchString(s) && !strings.Contains(s, ".") || shaped.MatchString(s)
}

func isLetter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }

// unescaped returns s without percent-encoding, or s itself if its encoding is invalid.
func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// Names of secrets, in lower case and without separators. A name is secret if it contains
// one of secretWords or equals one of secretNames.
var (
	secretWords = []string{"token", "secret", "passw", "pwd", "passphrase", "apikey", "accesskey", "privatekey", "session", "signature",
		"credential", "assertion", "saml", "ticket", "csrf", "xsrf", "jwt", "verifier", "bearer", "cookie", "oauth", "devicecode", "usercode", "magiclink"}
	secretNames = map[string]bool{"code": true, "key": true, "sig": true, "sid": true, "pass": true, "pin": true, "otp": true,
		"nonce": true, "state": true, "auth": true, "hmac": true, "xapikey": true, "clientkey": true, "hash": true}
)

// secretName reports whether a name is that of a secret.
func secretName(name string) bool {
	plain := strings.Map(func(r rune) rune {
		if isLetter(r) || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, name)
	plain = strings.ToLower(plain)
	for _, word := range secretWords {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return secretNames[plain] || strings.Contains(plain, "auth") && !strings.Contains(plain, "author") || strings.Contains(plain, "authori")
}
