package portable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/spelling"
)

// node is a JSON value and its path, for errors.
type node struct {
	path string
	raw  json.RawMessage
}

// top is the path of the whole file.
const top = "$"

// root checks that data is exactly one JSON value.
func root(data []byte) (node, error) {
	if !utf8.Valid(data) {
		return node{}, invalid("the file is not UTF-8")
	}
	if err := state.CheckObjectCount(data); err != nil {
		return node{}, invalid("%s", err)
	}
	n := node{path: top}
	err := json.Unmarshal(data, &n.raw)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return n, nil
	case !errors.As(err, &syntax):
		return node{}, invalid("the file is not JSON")
	case syntax.Error() == cutOff:
		return node{}, invalid("the file is not JSON: it ends too soon, at byte %d", len(data))
	}
	return node{}, invalid("the file is not JSON, at byte %d", syntax.Offset-1)
}

// cutOff is the text of encoding/json's error for JSON whose end is missing.
const cutOff = "unexpected end of JSON input"

func (n node) wrong(wanted string) error { return invalid("%s: must be %s", n.path, wanted) }

// object holds the members of a JSON object.
type object struct {
	node
	members map[string]json.RawMessage
}

func (n node) object() (object, error) {
	o := object{node: n}
	if json.Unmarshal(n.raw, &o.members) != nil || o.members == nil {
		return o, n.wrong("an object")
	}
	return o, nil
}

func (n node) list() ([]node, error) {
	var raw []json.RawMessage
	if json.Unmarshal(n.raw, &raw) != nil || raw == nil {
		return nil, n.wrong("an array")
	}
	nodes := make([]node, len(raw))
	for i := range raw {
		nodes[i] = node{fmt.Sprintf("%s[%d]", n.path, i), raw[i]}
	}
	return nodes, nil
}

// has reports whether a member exists.
func (o object) has(name string) bool { return o.members[name] != nil }

// get returns a member. A missing member has no raw value, and so no type.
func (o object) get(name string) node { return node{o.path + "." + name, o.members[name]} }

// others returns the sorted names of the members that are not listed.
func (o object) others(known ...string) []string {
	var others []string
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if !slices.Contains(known, name) {
			others = append(others, name)
		}
	}
	return others
}

// maxNamed limits how many unknown fields are named, because a file may have any number.
const maxNamed = 100

// drop counts the members that no reader uses. The reason names the path, and the field
// that the object lacks and a similar name stands for.
func (o object) drop(l *losses, known ...string) {
	lacks := slices.DeleteFunc(slices.Clone(known), o.has)
	for _, name := range o.others(known...) {
		component, reason := UnknownField, "fields that the format does not have"
		question := spelling.DidYouMean(name, lacks)
		if question != "" && o.path == top {
			component = MisspeltPart
		}
		if len(l.order) < maxNamed && len(name) <= 40 {
			reason = fmt.Sprintf("the format has no field %q", withoutIndexes(o.path)+"."+name)
			if question != "" {
				reason += ": " + question
			}
		}
		l.add(component, "", 1, reason)
	}
}

// withoutIndexes turns $.cookies[17] into $.cookies[], so that equal losses are counted
// together.
func withoutIndexes(path string) string {
	var b strings.Builder
	inside := false
	for _, c := range path {
		if inside = inside && c != ']'; !inside {
			b.WriteRune(c)
		}
		inside = inside || c == '['
	}
	return b.String()
}

// typed reads a value of one JSON type; null has none.
func typed[T any](n node, wanted string) (v T, err error) {
	if len(n.raw) == 0 || bytes.Equal(n.raw, []byte("null")) || json.Unmarshal(n.raw, &v) != nil {
		return v, n.wrong(wanted)
	}
	return v, nil
}

func (n node) text() (string, error)  { return typed[string](n, "a string") }
func (n node) boolean() (bool, error) { return typed[bool](n, "true or false") }

func (n node) number() (float64, error) {
	v, err := typed[float64](n, "a number")
	if err == nil && (math.IsInf(v, 0) || math.IsNaN(v)) {
		err = n.wrong("a number")
	}
	return v, err
}

// optional reads a member, or returns otherwise if it is missing.
func optional[T any](o object, name string, otherwise T, read func(node) (T, error)) (T, error) {
	if !o.has(name) {
		return otherwise, nil
	}
	return read(o.get(name))
}

// oneOf reads a string that must be one of allowed.
func (n node) oneOf(allowed ...string) (string, error) {
	v, err := n.text()
	if err != nil {
		return "", err
	}
	if !slices.Contains(allowed, v) {
		return "", n.wrong("one of " + strings.Join(allowed, ", "))
	}
	return v, nil
}

// webOrigin reads an origin that can hold storage. It must be scheme, host and port of
// http or https only, as Chrome writes it, without the scheme's default port.
func (n node) webOrigin() (string, error) {
	v, err := n.text()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Scheme+"://"+u.Host != v {
		return "", n.wrong("an origin such as https://a.example")
	}
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; u.Port() != "" {
		v = strings.TrimSuffix(v, port)
	}
	return v, nil
}
