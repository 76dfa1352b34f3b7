package launch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
)

// preflightTimeout bounds a preflight. Reading Chrome from a cold disk takes some
// seconds.
const preflightTimeout = 60 * time.Second

// Preflight tests Chrome as sessions will use it. It starts one on a temporary directory
// with its sandbox on, requests its version over the pipe and checks that its renderer is
// confined. With Landlock, files outside must be refused before Chrome starts (see
// [Launcher.Start]). Each error's message says how to fix the cause. Errors:
// ChromeMissing (none, not executable, too old), SandboxFailed (Landlock included),
// Config (Chrome's user cannot enter the data directory), BrowserFailed with the end of
// standard error in its cause, Timeout.
func (l *Launcher) Preflight(ctx context.Context) (Version, error) {
	return l.inScratch(ctx, func(ctx context.Context, dir *Dir) (Version, error) {
		v, err := l.check(ctx, dir)
		if err != nil {
			return Version{}, err
		}
		return v, l.try(ctx, dir)
	})
}

// Check is Preflight without the start of Chrome: it finds a missing or old Chrome, a kernel
// without Landlock, and a data directory that Chrome's user cannot enter. Only the first
// session shows then whether Chrome starts.
func (l *Launcher) Check(ctx context.Context) (Version, error) {
	return l.inScratch(ctx, l.check)
}

// NewScratchDir returns a temporary run directory of no session. If the daemon dies, the
// next one removes it ([Launcher.Sweep]).
func (l *Launcher) NewScratchDir() (*Dir, error) {
	return l.NewDir(scratchPrefix + strings.ToLower(rand.Text()[:8]))
}

// inScratch calls use with a temporary directory of a session.
func (l *Launcher) inScratch(ctx context.Context, use func(context.Context, *Dir) (Version, error)) (_ Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	dir, err := l.NewScratchDir()
	if err != nil {
		return Version{}, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	return use(ctx, dir)
}

func (l *Launcher) check(ctx context.Context, dir *Dir) (Version, error) {
	if l.uids != nil {
		if err := checkPassable(dir.Path, dir.UID); err != nil {
			return Version{}, err
		}
	}
	if !l.noLandlock {
		if err := checkLandlock(LandlockABI()); err != nil {
			return Version{}, err
		}
	}
	return l.Version(ctx, dir, false)
}

// try starts Chrome and returns nil if it answers and is confined.
func (l *Launcher) try(ctx context.Context, dir *Dir) (err error) {
	canary, err := l.makeCanary()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(canary))) }()
	p, err := l.Start(ctx, Options{Dir: dir, URL: "about:blank", denied: []string{canary}})
	if err != nil {
		return err
	}
	err = p.try(ctx)
	// The caller's context may have ended, but the tree must end in any case.
	err = errors.Join(err, p.pipe.Close(), p.Kill(context.WithoutCancel(ctx)))
	if err != nil {
		return p.explain(ctx, err)
	}
	return nil
}

// makeCanary creates a file that Landlock must keep from Chrome. Every user of the
// machine may read it by its permissions. It is in a separate directory beside those of
// the sessions.
func (l *Launcher) makeCanary() (string, error) {
	const op = "launch.canary"
	folder, err := os.MkdirTemp(l.root, scratchPrefix)
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, op, "")
	}
	canary := filepath.Join(folder, "canary")
	err = errors.Join(os.Chmod(folder, 0o755), os.WriteFile(canary, []byte("Landlock keeps this from Chrome.\n"), 0o644))
	return canary, fault.Wrap(err, fault.Internal, op, "")
}

// errUnconfined means that a Chrome runs pages outside a sandbox.
var errUnconfined = errors.New("the renderer is not confined")

// try returns nil if Chrome answers and its renderer is confined.
func (p *Process) try(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.pipe.Close() }) // the caller closes it again and gets the error
	defer stop()
	if _, err := io.WriteString(p.pipe, `{"id":1,"method":"Browser.getVersion"}`+"\x00"); err != nil {
		return err
	}
	answer, err := bufio.NewReader(p.pipe).ReadBytes(0)
	if err != nil {
		return err
	}
	if !bytes.Contains(answer, []byte(`"result"`)) {
		return errors.New("Browser.getVersion was refused")
	}
	if err := p.awaitConfined(ctx); err != nil {
		return err
	}
	return p.SendCommandLine(ctx, "about:blank")
}

// explain converts the error of a failed try into one that says how to fix the cause.
// Chrome must have ended.
func (p *Process) explain(ctx context.Context, err error) error {
	const op = "launch.preflight"
	exit := p.ExitState()
	if errors.Is(err, errUnanswered) { // its renderer is confined already
		return fault.Wrap(err, fault.ChromeMissing, op,
			"this Chrome cannot open a profile while it runs; install Chromium 156 or newer: apt-get update && apt-get install chromium")
	}
	if errors.Is(err, errUnconfined) || blamesSandbox(exit.Stderr) {
		return fault.Wrap(withStderr(err, exit), fault.SandboxFailed, op,
			"Chrome's sandbox does not work here: "+remedy(hostFiles()))
	}
	if ctx.Err() != nil {
		return fault.Wrap(withStderr(ctx.Err(), exit), fault.Timeout, op, "Chrome started but did not answer within a minute; try again, and read its standard error in the cause")
	}
	return fault.Wrap(withStderr(err, exit), fault.BrowserFailed, op, "Chrome did not start; its standard error is in the cause; check the binary, free memory and free disk space")
}

func withStderr(err error, exit ExitState) error {
	return errors.Join(err, errors.New("chrome's standard error: "+exit.Stderr))
}
