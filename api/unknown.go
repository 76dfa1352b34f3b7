package api

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// unknownField is a field or a parameter that a call does not accept.
type unknownField struct {
	path  string
	known []string // what the call accepts there, sorted
}

// maxUnknown is how many unknown names an error lists.
const maxUnknown = 5

// unknownFields returns the error that lists the unknown names and what is allowed; nil if
// there are none.
func unknownFields(kind string, all []unknownField) error {
	if len(all) == 0 {
		return nil
	}
	shown := make([]string, 0, maxUnknown)
	for _, u := range all[:min(len(all), maxUnknown)] {
		shown = append(shown, quoted(u.path)+u.hint())
	}
	return fault.New(fault.UnknownField, "api.bind", "unknown %s %s", kind, strings.Join(shown, ", "))
}

// hint says what is allowed: the name that the client most likely meant, else the names that
// begin with the client's, else all of them.
func (u unknownField) hint() string {
	if len(u.known) == 0 {
		return ": none is allowed"
	}
	name := plainName(u.path[strings.LastIndexByte(u.path, '.')+1:])
	nearest, distance := "", 1+len(name)/4 // one wrong letter in four, and one more
	for _, known := range u.known {
		if d := editDistance(name, plainName(known)); d <= distance && (nearest == "" || d < distance) {
			nearest, distance = known, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf(": did you mean %s?", nearest)
	}
	var longer []string // the client left out the end of a name
	for _, known := range u.known {
		if len(name) >= 4 && strings.HasPrefix(plainName(known), name) {
			longer = append(longer, known)
		}
	}
	if len(longer) > 0 {
		return fmt.Sprintf(": did you mean %s?", strings.Join(longer, " or "))
	}
	return ": allowed are " + strings.Join(u.known, ", ")
}

// plainName drops what languages spell differently: saveAsDefault becomes the same as
// save_as_default.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(shortened(name)))
}

// editDistance returns the least number of bytes to insert, remove or replace to turn a
// into b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // from the bytes of a so far to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// paths returns the names as answers list them.
func paths(all []unknownField) []string {
	var names []string
	for _, u := range all {
		names = append(names, u.path)
	}
	return names
}

// unknownIn records a name that a struct of type t does not have.
func (b *binder) unknownIn(t reflect.Type, path *fieldPath) {
	b.unknown = append(b.unknown, unknownField{path.String(), slices.Sorted(maps.Keys(b.known[t]))})
}
