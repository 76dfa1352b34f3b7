package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// misplaced says what to do about a folder in which an agent's storage keeps sessions, but
// not at users/OWNER/sessions; "" for everything else. The file storage of the Strands agents
// SDK puts sessions into a folder "session" below its root, unless it has a namespace.
func (c *checker) misplaced(ctx context.Context, key Key) string {
	path := strings.Split(key.path, "/")
	if len(path) < 3 || !ownerForm.MatchString(path[1]) {
		return ""
	}
	root := strings.Join(path[:2], "/")
	what := ""
	switch {
	case c.isSession(ctx, key):
		what = fmt.Sprintf("move this folder to %s/sessions/%s", root, path[len(path)-1])
	case c.hasSessions(ctx, key):
		what = fmt.Sprintf("move the folders in it to %s/sessions", root)
	default:
		return ""
	}
	return fmt.Sprintf("an agent's storage has another root than Stasis, which does not serve, copy or back up these documents; give it the root "+
		"%s and the namespace sessions, and %s", root, what)
}

// isSession reports whether a folder is an agent's session.
func (c *checker) isSession(ctx context.Context, folder Key) bool {
	return slices.Contains(c.first(ctx, folder), "scopes")
}

// hasSessions reports whether a folder has the folder of an agent's session.
func (c *checker) hasSessions(ctx context.Context, folder Key) bool {
	return slices.ContainsFunc(c.first(ctx, folder), func(name string) bool {
		return elementForm.MatchString(name) && c.isSession(ctx, Key{folder.path + "/" + name})
	})
}

// first returns the first names in a folder; none if key is not a folder.
func (c *checker) first(ctx context.Context, key Key) []string {
	names, err := c.vault.store.List(ctx, key, 10, "")
	if err != nil {
		return nil // a file
	}
	return names
}
