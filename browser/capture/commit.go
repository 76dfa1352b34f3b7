package capture

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/state"
)

// commitOrigin is the origin for the item of [Commit]. No site can exist there.
const commitOrigin = "https://commit.invalid"

// Commit makes Chrome write the localStorage of all pages now instead of seconds later.
// Chrome writes everything when the last page of an origin with unwritten data closes. So
// a hidden page stores an item, removes it and is closed. Once the removal is on disk, so
// is everything that pages had stored before. Commit returns the storage key and the item
// to look for, and does not wait for the write.
func Commit(ctx context.Context, conn Conn) (storageKey, item string, err error) {
	t, err := hiddentab.Open(ctx, conn)
	if err != nil {
		return "", "", err
	}
	defer t.Close(ctx)
	item = "commit-" + rand.Text() // a new name: earlier ones are on disk already
	script := fmt.Sprintf("localStorage.setItem(%[1]q, 1); localStorage.removeItem(%[1]q)", item)
	return commitOrigin + "/", item, t.Run(ctx, state.StorageKey{Origin: commitOrigin}, script, nil)
}
