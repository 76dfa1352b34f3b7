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

// filterDeadline bounds the going through of a profile.
const filterDeadline = time.Minute

// Filter leaves in a user data directory at rest what a selection wants; no
// Chrome has it open. It returns lines for what had to go whole because it
// could not be read, or has more than is read; what was left out by the selection its document tells
// ([state.Selection.Document]).
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
