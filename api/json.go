package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stasisd/stasis/fault"
)

// maxDepth limits how deep a body may nest; no wire type comes near it.
const maxDepth = 32

// object is a JSON object in the order of its text. The other JSON values are
// string, json.Number, bool, nil and []any.
type object []member

type member struct {
	name  string
	value any
}

// parseJSON reads exactly one JSON value. Unlike encoding/json it keeps the
// order of names and refuses duplicate ones, invalid UTF-8, and whatever
// follows the value. Errors are invalid_request and name the byte.
func parseJSON(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, fault.New(fault.InvalidRequest, "api.json", "the body is not UTF-8")
	}
	// Checked whole first, so that what is read token by token below is sound.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fault.New(fault.InvalidRequest, "api.json", "not JSON: %s, at byte %d", syntax, syntax.Offset)
		}
		return nil, fault.New(fault.InvalidRequest, "api.json", "not JSON")
	}
	if at := loneSurrogate(data); at >= 0 {
		return nil, fault.New(fault.InvalidRequest, "api.json", "half of a surrogate pair, which UTF-8 has not, at byte %d", at)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return readValue(dec, "", 0)
}

// loneSurrogate finds an escape that stands for half a character, -1 where
// there is none. Decoded they would all become U+FFFD: two IDs would be one.
func loneSurrogate(data []byte) int {
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		unit := escaped(data[i:])
		switch {
		case utf16.IsSurrogate(unit):
			if utf16.DecodeRune(unit, escaped(data[i+6:])) == unicode.ReplacementChar {
				return i
			}
			i += 11
		default:
			i++ // what is escaped may be a backslash
		}
	}
	return -1
}

// escaped is the UTF-16 unit of the \uXXXX that sound JSON begins with, -1 where
// it begins with something else.
func escaped(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

func readValue(dec *json.Decoder, path string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fault.New(fault.InvalidRequest, "api.json", "nested deeper than %d levels, at byte %d", maxDepth, dec.InputOffset())
	}
	token, err := dec.Token()
	if err != nil {
		return nil, unreadable(err)
	}
	switch token {
	case json.Delim('{'):
		return readObject(dec, path, depth)
	case json.Delim('['):
		items := []any{}
		for dec.More() {
			item, err := readValue(dec, fmt.Sprintf("%s[%d]", path, len(items)), depth+1)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		_, err = dec.Token()
		return items, unreadable(err)
	}
	return token, nil
}

func readObject(dec *json.Decoder, path string, depth int) (any, error) {
	fields := object{}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, unreadable(err)
		}
		name, _ := token.(string)
		if seen[name] {
			return nil, fault.New(fault.InvalidRequest, "api.json", "%s: given twice, at byte %d", quoted(join(path, name)), dec.InputOffset())
		}
		seen[name] = true
		value, err := readValue(dec, join(path, name), depth+1)
		if err != nil {
			return nil, err
		}
		fields = append(fields, member{name, value})
	}
	_, err := dec.Token()
	return fields, unreadable(err)
}

// unreadable makes a fault of a token error; the text was checked before, so
// only a defect gets here.
func unreadable(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fault.Wrap(err, fault.InvalidRequest, "api.json", "not JSON")
}

// join makes a field's path: "labels.team", "rights[0]".
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// quoted makes a client's name fit for a message: quoted and of limited length.
func quoted(name string) string {
	const limit = 80
	if len(name) > limit {
		name = name[:limit] + "…"
	}
	return fmt.Sprintf("%q", name)
}
