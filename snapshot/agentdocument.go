package snapshot

import (
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/stasisd/stasis/fault"
)

const (
	// MaxAgentDocument is the largest agent document, in bytes. A long conversation with
	// browser screenshots fits.
	MaxAgentDocument = 16 << 20
	maxManifest      = 64 << 10
)

// checkAgentDocument checks a document that an agent SDK wrote. It must have exactly the
// fields scope, schemaVersion, createdAt, data and appData, and the scope of its
// location. The contents of data and appData are not checked.
func checkAgentDocument(body []byte, scope string) error {
	fields, err := exactFields(body, MaxAgentDocument, "scope", "schemaVersion", "createdAt", "data", "appData")
	if err != nil {
		return err
	}
	if text(fields["scope"]) != scope {
		return invalidField("scope: must be %q, as in the path", scope)
	}
	if err := isTime("createdAt", fields["createdAt"]); err != nil {
		return err
	}
	for _, name := range []string{"data", "appData"} {
		if fields[name][0] != '{' {
			return invalidField("%s: must be an object", name)
		}
	}
	return nil
}

// checkManifest reports what is wrong with a location's manifest.
func checkManifest(body []byte) error {
	fields, err := exactFields(body, maxManifest, "schemaVersion", "updatedAt")
	if err != nil {
		return err
	}
	return isTime("updatedAt", fields["updatedAt"])
}

// exactFields reads a JSON object that has exactly the given names, no duplicate name,
// and a schemaVersion that this build knows.
func exactFields(body []byte, limit int, names ...string) (map[string]json.RawMessage, error) {
	const op = "snapshot.documents"
	if len(body) > limit {
		return nil, fault.New(fault.TooLarge, op, "the document is larger than %d bytes", limit)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil || !utf8.Valid(body) {
		return nil, fault.New(fault.InvalidRequest, op, "the document must be a JSON object in UTF-8")
	}
	if err := checkUniqueNames(body); err != nil {
		return nil, fault.New(fault.InvalidRequest, op, "the document is not valid: %s", err)
	}
	// The schemaVersion is checked first, because a later version may have other fields.
	if v, known := fields["schemaVersion"]; known && text(v) != SchemaVersion {
		return nil, fault.New(fault.Unsupported, op, "schemaVersion: %.20s is not known; must be %q", v, SchemaVersion)
	}
	for name := range fields {
		if !slices.Contains(names, name) {
			return nil, fault.New(fault.UnknownField, op, "unknown field %.80q", name)
		}
	}
	for _, name := range names {
		if fields[name] == nil {
			return nil, invalidField("%s: is required", name)
		}
	}
	return fields, nil
}

// text returns the value of a JSON string, or "" for any other JSON.
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func isTime(name string, raw json.RawMessage) error {
	if _, err := time.Parse(time.RFC3339, text(raw)); err != nil {
		return invalidField("%s: must be an RFC 3339 time", name)
	}
	return nil
}

func invalidField(format string, args ...any) error {
	return fault.New(fault.InvalidField, "snapshot.documents", format, args...)
}
