package browser

import (
	"context"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser/datadir"
	"github.com/stasisd/stasis/browser/inventory"
	"github.com/stasisd/stasis/browser/sift"
	"github.com/stasisd/stasis/state"
)

// siftDeadline bounds the going through of a profile.
const siftDeadline = time.Minute

// Sift leaves in a user data directory at rest what a selection wants; no
// Chrome has it open. It returns lines for what had to go whole because it
// could not be read, or has more than is read; what was left out by the selection its document tells
// ([state.Selection.Document]).
func Sift(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error) {
	if selection.All() || !datadir.Exists(userDataDir) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, siftDeadline)
	defer cancel()
	profile := filepath.Join(userDataDir, datadir.Profile)
	owners, err := inventory.Owners(ctx, profile)
	if err != nil {
		return nil, err
	}
	return sift.Run(ctx, profile, inventory.Stores, owners, selection)
}
