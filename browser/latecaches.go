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

// lateCaches are the caches of an environment that are unpacked while its Chrome runs. Until
// they are in place, pages that use the Cache API wait at gates.
type lateCaches struct {
	tail  Tail
	gates *gate.CacheGates
	done  chan struct{} // closed when the caches are in place, or Chrome is being ended
}

// cachesCanFollow reports whether the caches of the environment in a run directory can follow
// its other files. The report needs their number, which only the document has then.
func cachesCanFollow(dir *Dir, doc state.Document) bool {
	return doc.Inventory.Has(state.ComponentCacheStorage) && !gate.CachesTooLarge(os.DirFS(dir.Profile()))
}

// completeProfile waits for the tail of an environment before Chrome opens its profile. After
// an error the tail has not ended.
func (b *Browser) completeProfile(ctx context.Context, tail Tail) error {
	if err := tail.Wait(ctx); err != nil {
		return err
	}
	if err := gate.PlaceCaches(b.dir.Profile()); err != nil {
		return err
	}
	tail.Ended(nil)
	return nil
}

// holdCaches makes Chrome wait for the caches of the prepared environment.
func (b *Browser) holdCaches(tail Tail) error {
	gates, err := gate.CreateCacheGates(b.dir.Profile())
	if err == nil {
		b.late = &lateCaches{tail: tail, gates: gates, done: make(chan struct{})}
	}
	return err
}

// tailDeadline bounds how long the caches may take. With the limits of an archive, a slow store
// takes some minutes.
const tailDeadline = 15 * time.Minute

// fillCaches unpacks the caches and opens their gates. If that fails, the environment is not
// complete, so Chrome is ended.
func (b *Browser) fillCaches() {
	l := b.late
	defer close(l.done)
	b.awaitFirstPage()
	ctx, cancel := context.WithTimeout(b.ctx, tailDeadline)
	defer cancel()
	err := l.tail.Wait(ctx)
	if err == nil {
		err = l.gates.Open()
	}
	if err != nil {
		_ = b.process.Signal(syscall.SIGKILL) // it fails only if Chrome has ended
	}
	if b.ctx.Err() != nil {
		err = b.ctx.Err() // Chrome was ended by another
	}
	l.tail.Ended(err)
}

// awaitFirstPage gives the first page of a restore some time to load undisturbed.
func (b *Browser) awaitFirstPage() {
	wait := time.NewTimer(launch.LaterDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-b.ctx.Done():
	}
}

// awaitCaches waits until the environment is complete, or Chrome is being ended. If ctx ends
// first, the error is timeout.
func (b *Browser) awaitCaches(ctx context.Context) error {
	if b.late == nil {
		return nil
	}
	select {
	case <-b.late.done:
	case <-b.ctx.Done():
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Timeout, "browser.caches", "the caches of the environment were not restored in time")
	}
	return nil
}

// closeCaches releases what the late caches hold. Nothing may use them any more.
func (b *Browser) closeCaches() {
	if b.late != nil {
		b.late.gates.Close()
	}
}
