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

// preflightTimeout bounds a preflight; a Chrome that is read from a cold disk
// takes some seconds.
const preflightTimeout = 60 * time.Second

// Preflight tries Chrome as sessions will use it: it starts one on a
// directory that it throws away, sandbox on, asks it for its version over the
// pipe and checks that its renderer is confined. Behind Landlock, files outside
// must be refused before it starts (see [Launcher.Start]). Errors, each with a message
// that says how to mend it: ChromeMissing (none, not executable, too old),
// SandboxFailed (Landlock too), Config (Chrome's user cannot enter the data directory);
// BrowserFailed with the tail of standard error in its cause, Timeout.
func (l *Launcher) Preflight(ctx context.Context) (v Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	dir, err := l.NewDir(scratchPrefix + strings.ToLower(rand.Text()[:8]))
	if err != nil {
		return Version{}, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
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
	if v, err = l.Version(ctx, dir, false); err != nil {
		return Version{}, err
	}
	canary, err := l.makeCanary()
	if err != nil {
		return Version{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(canary))) }()
	p, err := l.Start(ctx, Options{Dir: dir, URL: "about:blank", denied: []string{canary}})
	if err != nil {
		return Version{}, err
	}
	err = p.try(ctx)
	// The caller's context may be over, and the tree must be gone anyway.
	err = errors.Join(err, p.pipe.Close(), p.Kill(context.WithoutCancel(ctx)))
	if err != nil {
		return Version{}, p.explain(ctx, err)
	}
	return v, nil
}

// makeCanary makes a file that every user of the machine may read but for the
// folders above it, in a directory of its own beside those of the sessions.
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

// errUnconfined says that a Chrome runs pages outside a sandbox.
var errUnconfined = errors.New("the renderer is not confined")

// try returns nil when Chrome answers and its renderer is confined.
func (p *Process) try(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.pipe.Close() }) // its error is the caller's to see
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
	return p.Ask(ctx, "about:blank")
}

// explain turns the failure of a try, after which Chrome is gone, into what
// can be done about it.
func (p *Process) explain(ctx context.Context, err error) error {
	const op = "launch.preflight"
	exit := p.ExitState()
	if errors.Is(err, errUnconfined) || blamesSandbox(exit.Stderr) {
		return fault.Wrap(withStderr(err, exit), fault.SandboxFailed, op,
			"Chrome's sandbox does not work here: "+remedy(hostFiles()))
	}
	if errors.Is(err, errUnanswered) {
		return fault.Wrap(err, fault.ChromeMissing, op,
			"this Chrome cannot take an environment in while it runs; a newer one can (measured with 156): apt-get update && apt-get install chromium")
	}
	if ctx.Err() != nil {
		return fault.Wrap(withStderr(ctx.Err(), exit), fault.Timeout, op, "Chrome did not answer in time")
	}
	return fault.Wrap(withStderr(err, exit), fault.BrowserFailed, op, "Chrome did not start; the log has its last words")
}

func withStderr(err error, exit ExitState) error {
	return errors.Join(err, errors.New("chrome's standard error: "+exit.Stderr))
}
