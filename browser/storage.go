package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/capture"
)

// Storage is what scripts can read of an environment's origins.
type Storage = capture.Storage

// storageDeadline bounds the reading of an environment's storage by script.
const storageDeadline = 60 * time.Second

// Storage reads the jar, and localStorage and IndexedDB of origins, without a
// request to their sites. No page of the environment should be open.
func (b *Browser) Storage(ctx context.Context, origins []string) (Storage, error) {
	ctx, cancel := context.WithTimeout(ctx, storageDeadline)
	defer cancel()
	return capture.ReadStorage(ctx, b.driver, origins)
}
