package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/profile"
)

// A copy is brought up to date while Chrome runs until what changes meanwhile is
// little, in bytes, or so many times; only the rest is copied while it stands still.
const (
	littleChanged = 1 << 20
	copyRounds    = 3
)

// pauseDeadline bounds how long Chrome may stand still for a copy.
const pauseDeadline = 2 * time.Second

// Precopy brings a copy of the environment's files up to date while Chrome runs,
// so that little is left for [Browser.Copy]. The copy is of no moment yet.
func (b *Browser) Precopy(ctx context.Context, c *profile.Copy) error {
	for range copyRounds {
		n, err := c.Update(ctx, b.dir.Profile())
		if err != nil || n < littleChanged {
			return err
		}
	}
	return nil
}

// Copy brings a copy of the environment's files up to date at one moment: Chrome
// stands still for it, and runs on as it was. It returns for how long. A client or
// a page sees no more of it than that nothing happened meanwhile.
func (b *Browser) Copy(ctx context.Context, c *profile.Copy) (stood time.Duration, err error) {
	// No page is left with half an authenticator while nobody answers.
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
