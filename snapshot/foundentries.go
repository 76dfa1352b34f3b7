package snapshot

import (
	"context"
	"iter"
	"strings"
)

// foundEntry is something found below users/. It is a location, an object or folder with an
// unknown name, or a folder that cannot be listed (err).
type foundEntry struct {
	key      Key
	location Location
	unknown  bool
	err      error
}

// levels check the names on the path from users/ to a location.
var levels = []func(name string) bool{
	ownerForm.MatchString, oneOf("sessions"), elementForm.MatchString,
	oneOf("scopes"), oneOf("agent", "multiAgent"), elementForm.MatchString, oneOf("snapshots"),
}

func oneOf(names ...string) func(string) bool {
	return func(name string) bool {
		for _, one := range names {
			if name == one {
				return true
			}
		}
		return false
	}
}

// foundEntries walks everything below users/, down to each location's own folder, in
// ascending order.
func foundEntries(ctx context.Context, s Store) iter.Seq[foundEntry] {
	return func(yield func(foundEntry) bool) {
		walk(ctx, s, usersFolder, levels, yield)
	}
}

// walk descends one level; it returns false if the caller has stopped.
func walk(ctx context.Context, s Store, folder Key, below []func(string) bool, yield func(foundEntry) bool) bool {
	if len(below) == 0 {
		e := strings.Split(folder.path, "/")
		return yield(foundEntry{key: folder, location: Location{Owner: e[1], Session: e[3], Scope: e[5], ScopeID: e[6]}})
	}
	for name, err := range names(ctx, s, folder) {
		if err != nil {
			return yield(foundEntry{key: folder, err: err})
		}
		key := Key{folder.path + "/" + name}
		if !below[0](name) {
			if !yield(foundEntry{key: key, unknown: true}) {
				return false
			}
		} else if !walk(ctx, s, key, below[1:], yield) {
			return false
		}
	}
	return true
}
