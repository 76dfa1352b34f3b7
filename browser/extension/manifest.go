package extension

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stasisd/stasis/fault"
)

const (
	maxManifest   = 1 << 20 // bytes; real ones have a few kilobytes
	maxMessages   = 4 << 20 // bytes of one file of translations
	maxNameLength = 256     // bytes of a displayed name
	maxIDBytes    = 64 << 10
)

// keyPrefix is the prefix of the key made for an extension without one. The manifest's
// name follows it, so a new version keeps the ID, on every machine.
const keyPrefix = "stasis extension\x00"

// manifest has the parts of a manifest.json that this package checks
// (https://developer.chrome.com/docs/extensions/reference/manifest).
type manifest struct {
	name, version, locale string
	key                   []byte // decoded; nil without one
	rawName               string // the name as written in the manifest
}

// parseManifest decodes and checks a manifest. It leaves all other fields to Chrome.
func parseManifest(raw []byte) (*manifest, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(trim(raw), &all); err != nil || all == nil {
		return nil, invalid("manifest.json is not a JSON object")
	}
	var (
		m           manifest
		generation  int
		key         string
		permissions []any
		optional    []any
		background  map[string]any
	)
	for _, field := range []struct {
		name, kind string
		to         any
		needed     bool
	}{
		{"manifest_version", "an integer", &generation, true},
		{"name", "a string", &m.name, true},
		{"version", "a string", &m.version, true},
		{"default_locale", "a string", &m.locale, false},
		{"key", "a string", &key, false},
		{"permissions", "an array", &permissions, false},
		{"optional_permissions", "an array", &optional, false},
		{"background", "an object", &background, false},
	} {
		value, there := all[field.name]
		if !there && field.needed {
			return nil, invalid("manifest.json: %s is missing", field.name)
		}
		if there && (string(bytes.TrimSpace(value)) == "null" || json.Unmarshal(value, field.to) != nil) {
			return nil, invalid("manifest.json: %s must be %s", field.name, field.kind)
		}
	}
	if generation != 3 {
		return nil, fault.New(fault.Unsupported, "extension.manifest",
			"manifest.json: manifest_version must be 3; Chrome does not run extensions with version %d", generation)
	}
	if m.name == "" || len(m.name) > maxNameLength || !utf8.ValidString(m.name) {
		return nil, invalid("manifest.json: name must have 1 to %d bytes", maxNameLength)
	}
	if !isVersion(m.version) {
		return nil, invalid("manifest.json: version must be one to four numbers of 0 to 65535 with dots between them")
	}
	if slices.Contains(append(optional, permissions...), any("nativeMessaging")) {
		return nil, fault.New(fault.Unsupported, "extension.manifest",
			"manifest.json: permissions: nativeMessaging is not allowed: it runs programs of the machine")
	}
	m.rawName = m.name
	if key != "" {
		if m.key = decodeKey(key); m.key == nil {
			return nil, invalid("manifest.json: key must be a public key in base64")
		}
	}
	return &m, nil
}

// trim removes a byte order mark, which some editors write.
func trim(raw []byte) []byte { return bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")) }

// isVersion implements Chrome's rule for an extension's version.
func isVersion(v string) bool {
	parts := strings.Split(v, ".")
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil || strconv.FormatUint(n, 10) != part {
			return false
		}
	}
	return len(parts) <= 4
}

// decodeKey decodes a manifest's key, base64 or PEM, as Chrome's
// Extension::ParsePEMKeyBytes does; nil if it is neither.
func decodeKey(key string) []byte {
	if block, _ := pem.Decode([]byte(key)); block != nil {
		return block.Bytes
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(key)
	if err != nil || len(raw) == 0 || len(raw) > maxIDBytes {
		return nil
	}
	return raw
}

// idOf returns an extension's ID: the first half of its key's SHA-256, with each hex
// digit as a letter from a to p (Chromium's components/crx_file/id_util.cc).
func idOf(key []byte) string {
	sum := sha256.Sum256(key)
	id := make([]byte, 0, 32)
	for _, b := range sum[:16] {
		id = append(id, 'a'+b>>4, 'a'+b&15)
	}
	return string(id)
}

var idPattern = regexp.MustCompile(`^[a-p]{32}$`)

// IsID reports whether a string has the form of an extension's ID.
func IsID(id string) bool { return idPattern.MatchString(id) }

// withKey returns the manifest with the key of the extension's ID: the key that signed a
// .crx, otherwise the manifest's own, otherwise one made from its name. A manifest that
// has this key is returned unchanged.
func (m *manifest) withKey(raw, signed []byte) ([]byte, error) {
	key := m.key
	if signed != nil {
		key = signed
	}
	if key == nil {
		key = []byte(keyPrefix + m.rawName)
	}
	if bytes.Equal(key, m.key) {
		return raw, nil
	}
	m.key = key
	var all map[string]json.RawMessage
	if err := json.Unmarshal(trim(raw), &all); err != nil {
		return nil, unreadable(manifestName, err)
	}
	all["key"] = json.RawMessage(strconv.Quote(base64.StdEncoding.EncodeToString(key)))
	out, err := json.Marshal(all)
	return out, fault.Wrap(err, fault.Internal, "extension.manifest", "")
}

var placeholder = regexp.MustCompile(`^__MSG_([A-Za-z0-9_@]+)__$`)

// localize replaces a translatable name by its message in the default locale. Without
// such a message the name stays unchanged.
func (m *manifest) localize(read func(name string, limit int64) ([]byte, error)) {
	part := placeholder.FindStringSubmatch(m.name)
	if part == nil || strings.ContainsAny(m.locale, "/.") {
		return
	}
	raw, err := read("_locales/"+m.locale+"/messages.json", maxMessages)
	if err != nil {
		return
	}
	var messages map[string]struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(trim(raw), &messages) != nil {
		return
	}
	for name, entry := range messages {
		if strings.EqualFold(name, part[1]) && entry.Message != "" && len(entry.Message) <= maxNameLength && utf8.ValidString(entry.Message) {
			m.name = entry.Message
		}
	}
}
