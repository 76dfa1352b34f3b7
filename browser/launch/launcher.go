package launch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// Config says how a daemon starts its Chromes.
type Config struct {
	Binary string   // Chrome's path; empty: found by [Find]
	Shell  string   // the headless shell's; empty: found in the usual places, if it is there
	Root   string   // folder of the run directories; made if absent
	UIDs   UIDRange // used when run by root; zero: [DefaultUIDs]

	NoLandlock bool // start Chromes without Landlock: they read what their user can
}

// Options say how one Chrome is started.
type Options struct {
	Dir           *Dir     // from NewDir
	Shell         bool     // the headless shell in Chrome's place; it has one profile, Default
	Profile       string   // --profile-directory; empty: Chrome's own choice
	URL           string   // what to open, such as about:blank; empty: what the profile says
	Width, Height int      // the window, in CSS pixels; zero: 1280×900
	TimeZone      string   // TZ, an IANA name; empty: the machine's
	ExtraArgs     []string // further flags; those that weaken the sandbox or collide are refused

	denied []string // files that Landlock must refuse, or Chrome is not started
}

// Launcher starts Chromes. It may be used from many goroutines.
type Launcher struct {
	binary string
	shell  string // "" where there is none
	root   string
	uids   *uidPool // nil unless run by root

	noLandlock bool

	mu       sync.Mutex
	versions map[string]Version // by binary, once asked
}

// New returns a launcher and makes its root folder. Errors: ChromeMissing when
// no binary is found, Config when the root cannot be made.
func New(c Config) (*Launcher, error) {
	const op = "launch.new"
	binary, err := Find(c.Binary)
	if err != nil {
		return nil, err
	}
	shell, err := findShell(c.Shell)
	if err != nil {
		return nil, err
	}
	l := &Launcher{binary: binary, shell: shell, noLandlock: c.NoLandlock, versions: map[string]Version{}}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		// Chrome's users must pass through, and need not see what is there.
		mode = 0o711
		uids := c.UIDs
		if uids == (UIDRange{}) {
			uids = DefaultUIDs
		}
		if uids.Base <= 0 || uids.Count <= 0 {
			return nil, fault.New(fault.Config, op, "the range of user IDs for browsers must be above 0 and not empty")
		}
		l.uids = newUIDPool(uids, aliveUIDs)
	}
	if c.Root == "" {
		return nil, fault.New(fault.Config, op, "no folder for running browsers")
	}
	if err := os.MkdirAll(c.Root, mode); err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "the folder for running browsers cannot be made")
	}
	// Whoever sweeps after this daemon knows its Chromes by this path, so it
	// must not depend on how it was spelled.
	root, err := filepath.Abs(c.Root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	l.root = root
	l.reserve()
	return l, fault.Wrap(err, fault.Config, op, "the folder for running browsers cannot be read")
}

// Binary returns the path of the Chrome that is started.
func (l *Launcher) Binary() string { return l.binary }

// Shell returns the path of the headless shell, "" where there is none.
func (l *Launcher) Shell() string { return l.shell }

// binaryOf is what runs an engine. Errors: Unsupported where there is no shell.
func (l *Launcher) binaryOf(shell bool) (string, error) {
	if !shell {
		return l.binary, nil
	}
	return l.shell, l.HasShell()
}

// HasShell returns nil where the headless shell is there, else Unsupported with
// a message that says how to mend it.
func (l *Launcher) HasShell() error {
	if l.shell == "" {
		return fault.New(fault.Unsupported, "launch.shell",
			"engine: the headless shell is not there; "+installShell+", or name it with --shell, and start the daemon again")
	}
	return nil
}

// Landlock returns the version of Landlock behind which Chromes are started, 0 for
// none.
func (l *Launcher) Landlock() int {
	if l.noLandlock {
		return 0
	}
	return LandlockABI()
}

// Root returns the folder of the run directories, absolute and free of links.
func (l *Launcher) Root() string { return l.root }

// Start starts a Chrome on o.Dir and returns once it runs; whether it answers
// is seen on its pipe. ctx bounds the start alone: when it ends before, what
// was started is killed and gone when Start returns. The caller ends the
// process, by CDP or [Process.Kill], and closes its pipe. Errors:
// ChromeMissing when the binary cannot be executed, SandboxFailed when Landlock
// does not refuse the folder of all run directories, Config when Chrome's user
// cannot enter the directory, Timeout or BrowserFailed when ctx ended first or
// the system refused.
func (l *Launcher) Start(ctx context.Context, o Options) (*Process, error) {
	const op = "launch.start"
	if err := ctx.Err(); err != nil {
		return nil, startCancelled(op, err)
	}
	binary, err := l.binaryOf(o.Shell)
	if err != nil {
		return nil, err
	}
	args, err := arguments(o)
	if err != nil {
		return nil, err
	}
	ord := order{Path: binary, Args: args, Env: environment(o.Dir, o.TimeZone), Dir: o.Dir.Path, UID: -1}
	if l.uids != nil {
		ord.UID = o.Dir.UID
	}
	if !l.noLandlock {
		ord.Grants = grants(binary, o.Dir)
		// The folder of all run directories has those of other sessions.
		ord.Denied = append([]string{l.root}, o.denied...)
	}
	p, reports, err := startWarden(ord)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "")
	}
	p.dir, p.flags = o.Dir, portable(args)
	first := make(chan report, 1)
	go p.supervise(reports, first)
	select {
	case r, ok := <-first:
		if !ok {
			r.Errno = syscall.ECHILD // the warden died before it could say anything
		}
		if r.Unconfined != "" {
			err := fault.Wrap(errors.New(r.Unconfined), fault.SandboxFailed, op, "Landlock does not keep the machine's files from Chrome; "+
				"is the binary that --chrome or --shell names in a folder that holds more than Chrome? Give it a folder of its own")
			return nil, errors.Join(err, p.discard())
		}
		if r.Errno != 0 {
			return nil, errors.Join(startFailed(op, r.Errno, o.Dir), p.discard())
		}
		if err := p.grasp(r.PID); err != nil {
			return nil, errors.Join(fault.Wrap(err, fault.BrowserFailed, op, ""), p.discard())
		}
		return p, nil
	case <-ctx.Done():
		return nil, errors.Join(startCancelled(op, ctx.Err()), p.discard())
	}
}

// startWarden starts a warden with its order. What it returns is supervised
// by nobody yet.
func startWarden(o order) (*Process, io.ReadCloser, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	var files [8]*os.File // four pipes, each its reading end and its writing one
	for i := 0; i < len(files); i += 2 {
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			return nil, nil, errors.Join(err, closeAll(files[:i]...))
		}
	}
	requests, answers, lifeline, reports := files[0:2], files[2:4], files[4:6], files[6:8]
	p := &Process{
		pipe: &pipe{r: answers[0], w: requests[1]}, lifeline: lifeline[1], errors: &tail{}, done: make(chan struct{}),
	}
	// By this path it is the same program even when the file was replaced.
	p.warden = &exec.Cmd{
		Path: "/proc/self/exe",
		Args: []string{wardenName, WardenArg},
		// Nothing of the daemon's. A binary built with the race detector would
		// sleep a second at its exit; others do not read this.
		Env:         []string{"GORACE=atexit_sleep_ms=0"},
		Dir:         "/",
		ExtraFiles:  []*os.File{requests[0], answers[1], lifeline[0], reports[1]}, // 3, 4, 5, 6
		Stderr:      p.errors,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   time.Second, // for standard error, when the warden was killed and Chrome lives
	}
	err = p.warden.Start()
	err = errors.Join(err, closeAll(p.warden.ExtraFiles...))
	if err == nil {
		_, err = lifeline[1].Write(append(line, '\n'))
	}
	if err != nil {
		err = errors.Join(err, closeAll(answers[0], requests[1], lifeline[1], reports[0]))
		if p.warden.Process != nil {
			err = errors.Join(err, p.warden.Wait()) // it ends with its lifeline
		}
		return nil, nil, err
	}
	return p, reports[0], nil
}

// discard ends a process that its caller never got.
func (p *Process) discard() error {
	err := p.pipe.Close()
	return errors.Join(err, p.Kill(context.Background())) // which has a deadline
}

func startCancelled(op string, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fault.Wrap(cause, fault.Timeout, op, "")
	}
	return fault.Wrap(cause, fault.BrowserFailed, op, "")
}

func startFailed(op string, errno syscall.Errno, dir *Dir) error {
	if errno == syscall.EACCES {
		if err := checkPassable(dir.Path, dir.UID); err != nil {
			return err
		}
	}
	switch errno {
	case syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC:
		return fault.Wrap(errno, fault.ChromeMissing, op, "Chrome's binary cannot be executed; "+install)
	}
	return fault.Wrap(errno, fault.BrowserFailed, op, "")
}

func closeAll(files ...*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
