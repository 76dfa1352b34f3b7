package browser

import (
	"context"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/filter"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// filterDeadline bounds the filtering of a profile.
const filterDeadline = time.Minute

// Filter removes from a user data directory everything that the selection excludes. No
// Chrome may have the directory open. It returns lines for data that had to be removed
// completely, because it was unreadable or exceeded a limit. What the selection itself
// left out is reported by [state.Selection.Document].
func Filter(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error) {
	if selection.All() || !profile.Exists(userDataDir) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, filterDeadline)
	defer cancel()
	folder := filepath.Join(userDataDir, profile.Default)
	owners, err := inspect.Owners(ctx, folder)
	if err != nil {
		return nil, err
	}
	return filter.Run(ctx, folder, inspect.Stores, owners, selection)
}
