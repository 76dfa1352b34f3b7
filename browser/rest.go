package browser

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/profile/gate"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// laterCaches are the caches of an environment that are unpacked while its Chrome runs. Until
// then, pages that use the Cache API wait at gates.
type laterCaches struct {
	rest  Rest
	gates gate.Caches
	done  chan struct{} // closed when the caches are in place, or Chrome is being ended
}

// completeProfile waits for the rest of an environment before Chrome opens its profile.
func (b *Browser) completeProfile(ctx context.Context, rest Rest) error {
	if err := rest.Wait(ctx); err != nil {
		return err
	}
	dir, err := os.OpenRoot(b.dir.Profile())
	if err != nil {
		return fault.Wrap(err, fault.Internal, "browser.rest", "the profile's folder cannot be opened")
	}
	err = gate.PlaceCaches(dir)
	if closed := dir.Close(); err == nil {
		err = fault.Wrap(closed, fault.Internal, "browser.rest", "")
	}
	return err
}

// holdCaches makes Chrome wait for the caches of the prepared environment.
func (b *Browser) holdCaches(rest Rest) error {
	dir, err := os.OpenRoot(b.dir.Profile())
	if err != nil {
		return fault.Wrap(err, fault.Internal, "browser.rest", "the profile's folder cannot be opened")
	}
	gates, err := gate.HoldCaches(dir)
	if err != nil {
		_ = dir.Close() // only a handle
		return err
	}
	b.later = &laterCaches{rest: rest, gates: gates, done: make(chan struct{})}
	return nil
}

// fillCaches unpacks the caches and opens their gates. It begins when the first page has had
// some time to load. If it fails, the environment is not complete, so Chrome is ended.
func (b *Browser) fillCaches() {
	l := b.later
	defer close(l.done)
	wait := time.NewTimer(launch.LaterDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-b.ctx.Done():
	}
	err := l.rest.Wait(b.ctx)
	if err == nil {
		err = l.gates.Open()
	}
	_ = l.gates.Close() // only a handle
	if err != nil {
		_ = b.process.Signal(syscall.SIGKILL) // it fails only if Chrome has ended
	}
}

// awaitCaches waits until the environment is complete, or Chrome is being ended.
func (b *Browser) awaitCaches(ctx context.Context) {
	if b.later == nil {
		return
	}
	select {
	case <-b.later.done:
	case <-ctx.Done():
	}
}

// cachesCanFollow reports whether the caches of the environment in a run directory can follow
// its other files. The report needs their number, which only the document has then.
func cachesCanFollow(dir *Dir, doc state.Document) bool {
	return doc.Inventory.Has(state.ComponentCacheStorage) && !gate.CachesTooLarge(os.DirFS(dir.Profile()))
}
