package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/profile"
)

// Precopy updates the copy while Chrome runs until an update copies less than
// smallUpdate bytes, at most copyRounds times. Only the remainder is copied while
// Chrome is paused.
const (
	smallUpdate = 1 << 20
	copyRounds  = 3
)

// pauseDeadline bounds how long Chrome may be paused for a copy.
const pauseDeadline = 2 * time.Second

// Precopy updates a copy of the environment's files while Chrome runs, so that
// [Browser.Copy] has little left to do. The copy is not consistent yet.
func (b *Browser) Precopy(ctx context.Context, c *profile.Copy) error {
	for range copyRounds {
		n, err := c.Update(ctx, b.dir.Profile())
		if err != nil || n < smallUpdate {
			return err
		}
	}
	return nil
}

// Copy makes a copy of the environment's files consistent. It pauses Chrome for the last
// update and returns how long. Clients and pages only see that nothing happened in that
// time.
func (b *Browser) Copy(ctx context.Context, c *profile.Copy) (stood time.Duration, err error) {
	// A paused repair could leave a page with half an authenticator.
	defer b.passkeys.pause()()
	ctx, cancel := context.WithTimeout(ctx, pauseDeadline)
	defer cancel()
	began := b.now()
	err = b.process.Pause(ctx, func() error {
		_, err := c.Update(ctx, b.dir.Profile())
		return err
	})
	return b.now().Sub(began), err
}
