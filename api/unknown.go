package api

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state/spelling"
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
	if question := spelling.DidYouMean(u.path[strings.LastIndexByte(u.path, '.')+1:], u.known); question != "" {
		return ": " + question
	}
	return ": allowed are " + strings.Join(u.known, ", ")
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
