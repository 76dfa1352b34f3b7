package capture

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/state"
)

// commitOrigin is where [Commit] leaves its mark. Nobody can have a site there.
const commitOrigin = "https://commit.invalid"

// Commit makes Chrome write the localStorage of all pages now, in place of
// seconds later: it writes all that is unwritten when the last page of any
// origin is closed that has something unwritten. So a hidden page stores an
// item, removes it and is closed. Once that removal is on disk so is what pages
// had stored before; Commit does not wait for it.
func Commit(ctx context.Context, conn Conn) (storageKey, item string, err error) {
	t, err := hiddentab.Open(ctx, conn)
	if err != nil {
		return "", "", err
	}
	defer t.Close(ctx)
	item = "commit-" + rand.Text() // earlier ones are on disk already
	script := fmt.Sprintf("localStorage.setItem(%[1]q, 1); localStorage.removeItem(%[1]q)", item)
	return commitOrigin + "/", item, t.Run(ctx, state.StorageKey{Origin: commitOrigin}, script, nil)
}
