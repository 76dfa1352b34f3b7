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

// The steps of a clean close, after the pages have been let leave, and how long
// each may take. Browser.close runs Chrome's whole teardown, which is what puts
// cookies, DOM storage and session files on disk, and passes the pages' unload
// handlers by; SIGKILL loses what was not written.
const (
	closeDeadline     = 15 * time.Second
	interruptDeadline = 5 * time.Second
)

// trimDeadline bounds how long pages may take to give back memory. It takes some
// tenths of a second where there is much of it.
const trimDeadline = time.Second

// trimFrom is how much memory of its own a process must have, in bytes, for the
// pages to be asked for some of it. At rest the largest has half of that, and of
// small pages nothing is to be had.
const trimFrom = 64 << 20

// Close ends Chrome and waits until its whole process tree has gone: asked
// to quit as by a person first, over CDP next, interrupted, and killed last. It
// returns how the datadir was left: clean only if Chrome went through its own
// teardown and ended with status 0.
func (b *Browser) Close(ctx context.Context) (state.Datadir, error) {
	if b.Frozen() {
		if err := b.Thaw(ctx); err != nil {
			return state.DatadirCrash, b.Kill(ctx)
		}
	}
	end := b.closing()
	if b.unflushed.Load() {
		end.flush(ctx)
	}
	end.leave(ctx)
	asked, cancel := context.WithTimeout(ctx, closeDeadline)
	defer cancel()
	// The answer may be lost with the pipe; the end of the processes is what counts.
	_, _ = cdp.Call(asked, b.driver, browser.Close, cdp.Empty{})
	err := b.process.Wait(asked)
	if err != nil {
		// A Chrome that is gone already needs no signal.
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

// Kill ends Chrome at once, whatever it does, waits until its process tree and
// the daemon's own work with it have gone. It is idempotent.
func (b *Browser) Kill(ctx context.Context) error {
	b.cancel()
	err := b.process.Kill(ctx)
	if b.mux != nil {
		if cerr := b.mux.Close(); err == nil {
			err = cerr
		}
	}
	b.background.Wait()
	b.guard.sending.Wait()
	b.listeners.Wait()
	b.targets.Wait()
	b.passkeys.wait()
	b.relay.Close()
	return fault.Wrap(err, fault.BrowserFailed, "browser.kill", "Chrome could not be ended")
}

// Trim makes Chrome give back memory that its pages can do without, before it is
// frozen for long (see capture.Trim); where none has much, it does nothing. A
// frozen one begins when it is woken.
func (b *Browser) Trim(ctx context.Context) {
	if b.process.Largest() < trimFrom {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, trimDeadline)
	defer cancel()
	capture.Trim(ctx, b.reader())
}

// Freeze stops the whole process tree, so that nothing of it runs and its
// files stand still. No page is left with half an authenticator: what Chrome
// answers hours later nobody waits for.
func (b *Browser) Freeze(ctx context.Context) error {
	defer b.passkeys.pause()()
	return b.process.Freeze(ctx)
}

// Thaw makes the browser ready for use: it is woken, and after CloseClients new
// clients may come. Errors are Wake's.
func (b *Browser) Thaw(ctx context.Context) error {
	if err := b.Wake(ctx); err != nil {
		return err
	}
	b.mux.Clients.Admit()
	return nil
}

// Wake lets a frozen process tree run again, for the daemon alone, and waits
// until Chrome answers. One that does not within ctx is browser_failed.
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

// Memory is the proportional set size of the process tree, in bytes: what its
// processes share with others is divided among all who share it. Reading it takes
// tens of milliseconds.
func (b *Browser) Memory() int64 { return b.process.Memory() }

// Environment lists the files of the environment on disk. Chrome must be
// closed or frozen.
func (b *Browser) Environment(ctx context.Context) ([]profile.File, error) {
	return profile.Select(ctx, b.dir.Profile())
}
