package browser

import (
	"context"
	"syscall"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// Deadlines of the steps of a clean close, after leave. Browser.close runs Chrome's whole
// shutdown, which writes cookies, DOM storage and session files to disk. It skips the
// pages' unload handlers. SIGKILL loses what was not written.
const (
	closeDeadline     = 15 * time.Second
	interruptDeadline = 5 * time.Second
)

// trimDeadline bounds how long pages may take to release memory. With much memory it
// takes some tenths of a second, and more on a busy machine. A page that hangs, or has a dialog,
// takes longer. The reading of the state beside it waits as long for that page.
const trimDeadline = capture.TabDeadline

// trimFrom is the private memory in bytes from which a process is trimmed. At rest the
// largest process has half of that, and small pages release nothing.
const trimFrom = 64 << 20

// Close ends Chrome and waits until its whole process tree has ended. It requests a
// normal quit first, then sends Browser.close, then SIGINT, and finally SIGKILL. It
// returns the state of the user data directory: clean only if Chrome finished its own
// shutdown and exited with status 0.
func (b *Browser) Close(ctx context.Context) (state.Datadir, error) {
	if b.Frozen() {
		if err := b.Thaw(ctx); err != nil {
			return state.DatadirCrash, b.Kill(ctx)
		}
	}
	_ = b.awaitCaches(ctx) // without them, the profile is refused when it is read
	if b.openRest != nil {
		b.openRest()
	}
	end := b.closing()
	if b.unflushed.Load() {
		_ = end.flush(ctx) // the comparison after the close finds what is missing
	}
	end.leave(ctx)
	asked, cancel := context.WithTimeout(ctx, closeDeadline)
	defer cancel()
	// The answer may be lost with the pipe. Only the end of the processes counts.
	_, _ = cdp.Call(asked, b.driver, browser.Close, cdp.Empty{})
	err := b.process.Wait(asked)
	if err != nil {
		// If Chrome has already exited, the signal fails, which is fine.
		_ = b.process.Signal(syscall.SIGINT)
		interrupted, cancel := context.WithTimeout(ctx, interruptDeadline)
		defer cancel()
		err = b.process.Wait(interrupted)
	}
	clean := err == nil && b.process.ExitState().Clean()
	if kerr := b.Kill(context.WithoutCancel(ctx)); kerr != nil {
		return state.DatadirCrash, kerr
	}
	if !clean {
		return state.DatadirCrash, nil
	}
	return state.DatadirClean, nil
}

func (b *Browser) closing() closing {
	return closing{driver: b.driver, mux: b.mux, process: b.process, dir: b.dir, shell: b.shell()}
}

// Kill ends Chrome at once. It waits until the process tree and the daemon's own work on
// it have ended. It is idempotent.
func (b *Browser) Kill(ctx context.Context) error {
	b.cancel()
	err := b.process.Kill(ctx)
	if b.mux != nil {
		if cerr := b.mux.Close(); err == nil {
			err = cerr
		}
	}
	b.background.Wait()
	b.closeCaches()
	b.guard.sending.Wait()
	b.foreground.wait()
	b.listeners.Wait()
	b.targets.Wait()
	b.passkeys.wait()
	b.relay.Close()
	unlimit := func() { b.unlimit.Do(func() { b.starter.unlimitEgress(b.dir) }) }
	if err == nil { // no process of the user is left
		unlimit()
	} else {
		b.dir.WhenRemoved(unlimit)
	}
	return fault.Wrap(err, fault.BrowserFailed, "browser.kill", "Chrome could not be ended")
}

// Trim makes Chrome release memory that its pages do not need, before it is frozen for
// long (see capture.Trim). It does nothing if no process has much memory. A frozen Chrome
// trims when it wakes.
func (b *Browser) Trim(ctx context.Context) {
	if b.process.Largest() < trimFrom {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, trimDeadline)
	defer cancel()
	capture.Trim(ctx, b.reader())
}

// Freeze stops the whole process tree, so that none of its files changes. It first waits
// until the caches of a restore are in place, and until a repair of authenticators has
// finished. Chrome would answer a repair hours later and leave a page with half an
// authenticator.
func (b *Browser) Freeze(ctx context.Context) error {
	if err := b.awaitCaches(ctx); err != nil {
		return err
	}
	defer b.passkeys.pause()()
	return b.process.Freeze(ctx)
}

// Thaw makes a frozen browser usable: it wakes Chrome and admits new clients after
// CloseClients. It returns the errors of Wake.
func (b *Browser) Thaw(ctx context.Context) error {
	if err := b.Wake(ctx); err != nil {
		return err
	}
	b.mux.Clients.Admit()
	return nil
}

// Wake continues a frozen process tree, without admitting clients, and waits until Chrome
// answers. If Chrome does not answer before ctx ends, the error is browser_failed.
func (b *Browser) Wake(ctx context.Context) error {
	if !b.Frozen() {
		return nil
	}
	if err := b.process.Thaw(ctx); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, b.driver, browser.GetVersion, cdp.Empty{})
	b.passkeys.repair()
	return fault.Wrap(err, fault.BrowserFailed, "browser.wake", "Chrome does not answer")
}

// Frozen reports whether the process tree is stopped.
func (b *Browser) Frozen() bool { return b.process.Frozen() }

// Memory returns the proportional set size of the process tree in bytes: shared memory is
// divided among the processes that share it. Reading it takes tens of milliseconds.
func (b *Browser) Memory() int64 { return b.process.Memory() }

// Environment lists the files of the environment on disk. It first waits until the caches of a
// restore are in place. While Chrome runs, the list may be out of date.
func (b *Browser) Environment(ctx context.Context) ([]profile.File, error) {
	if err := b.awaitCaches(ctx); err != nil {
		return nil, err
	}
	return profile.Select(ctx, b.dir.Profile())
}
