package launch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stasisd/stasis/browser/cgroup"
	"github.com/stasisd/stasis/browser/netns"
	"github.com/stasisd/stasis/fault"
)

// Config says how a daemon starts its Chromes.
type Config struct {
	Binary string   // Chrome's path; empty: found by [Find]
	Shell  string   // the headless shell's path; empty: found in the usual places, if installed
	Root   string   // folder of the run directories; created if absent
	UIDs   UIDRange // used if the daemon runs as root; zero: [DefaultUIDs]

	Groups *cgroup.Groups // of control groups, one for each Chrome; nil: none
	Files  uint64         // files that each process of a Chrome may have open; 0: as many as the daemon

	NoLandlock bool // start Chromes without Landlock: they can read whatever their user can read

	// Networks gives each Chrome a network namespace; nil: they use the daemon's. The daemon
	// must not run as root.
	Networks *netns.Networks

	// Deadline is the time until which Chromes may run; nil: they have none.
	Deadline *Deadline
}

// Options says how one Chrome is started.
type Options struct {
	Dir           *Dir     // from NewDir
	Shell         bool     // start the headless shell instead of Chrome; it has one profile, Default
	Profile       string   // --profile-directory; empty: Chrome's own choice
	URL           string   // page to open, such as about:blank; empty: what the profile specifies
	Width, Height int      // the window, in CSS pixels; zero: 1280×900
	TimeZone      string   // TZ, an IANA name; empty: the machine's
	ExtraArgs     []string // further flags; those that weaken the sandbox or conflict are refused
	Hold          bool     // opens of databases wait until [Process.Release]
	// Limits are those of the Chrome's control group; without one, Tasks holds if the Chrome
	// has its own user.
	Limits cgroup.Limits

	denied []string // files that Landlock must refuse, else Chrome is not started
}

// Launcher starts Chromes. Its methods are safe for concurrent use.
type Launcher struct {
	binary string
	shell  string // "" if there is none
	root   string
	uids   *uidPool // nil unless the daemon runs as root

	groups     *cgroup.Groups
	files      uint64
	noLandlock bool
	networks   *netns.Networks
	deadline   *Deadline

	mu       sync.Mutex
	versions map[string]Version // by binary, after the first query
}

// New returns a launcher and creates its root folder. Errors: ChromeMissing if no binary
// is found, Config if the root cannot be created.
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
	l := &Launcher{binary: binary, shell: shell, groups: c.Groups, files: c.Files, noLandlock: c.NoLandlock, networks: c.Networks, deadline: c.Deadline, versions: map[string]Version{}}
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		// Chrome's users must be able to enter the folder but need not list it.
		mode = 0o711
		uids := c.UIDs
		if uids == (UIDRange{}) {
			uids = DefaultUIDs
		}
		if uids.Base <= 0 || uids.Count <= 0 {
			return nil, fault.New(fault.Config, op, "--uid-base, --uid-count: must both be 1 or more")
		}
		l.uids = newUIDPool(uids, aliveUIDs)
	}
	if c.Root == "" {
		return nil, fault.New(fault.Config, op, "the folder for running browsers is not set")
	}
	if err := os.MkdirAll(c.Root, mode); err != nil {
		return nil, fault.Wrap(err, fault.Config, op, "the folder for running browsers cannot be created")
	}
	// The umask may have removed bits, or an ordinary user's daemon may have made the folder.
	if info, err := os.Stat(c.Root); l.uids != nil && err == nil && info.Mode()&mode != mode {
		if err := os.Chmod(c.Root, mode); err != nil {
			return nil, fault.Wrap(err, fault.Config, op, "Chrome's users cannot be allowed to enter the folder for running browsers")
		}
	}
	// The next daemon's Sweep identifies this daemon's Chromes by this path, so the path
	// must not depend on its spelling.
	root, err := filepath.Abs(c.Root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	l.root = root
	setTopDir(root)
	l.reserve()
	return l, fault.Wrap(err, fault.Config, op, "the folder for running browsers cannot be read")
}

// Binary returns the path of Chrome's binary.
func (l *Launcher) Binary() string { return l.binary }

// Shell returns the path of the headless shell, or "" if there is none.
func (l *Launcher) Shell() string { return l.shell }

// binaryOf returns the binary of an engine. Errors: Unsupported if there is no shell.
func (l *Launcher) binaryOf(shell bool) (string, error) {
	if !shell {
		return l.binary, nil
	}
	return l.shell, l.HasShell()
}

// HasShell returns nil if the headless shell is installed, else Unsupported with a
// message that says how to install it.
func (l *Launcher) HasShell() error {
	if l.shell == "" {
		return fault.New(fault.Unsupported, "launch.shell",
			"engine: the headless shell is not installed; "+installShell+", or set its path with --shell, then restart the daemon")
	}
	return nil
}

// Landlock returns the version of Landlock that confines Chromes, or 0 for none.
func (l *Launcher) Landlock() int {
	if l.noLandlock {
		return 0
	}
	return LandlockABI()
}

// HasNetworks reports whether each Chrome has its own network namespace.
func (l *Launcher) HasNetworks() bool { return l.networks != nil }

// Root returns the folder of the run directories, absolute and with symbolic links
// resolved.
func (l *Launcher) Root() string { return l.root }

// Start starts a Chrome on o.Dir and returns once its process runs. The caller finds out
// on the pipe whether Chrome answers. ctx bounds only the start. If ctx ends first, the
// started processes are killed and have ended when Start returns. The caller ends the
// process, by CDP or [Process.Kill], and closes its pipe. Errors: ChromeMissing if the
// binary cannot be executed, SandboxFailed if Landlock does not refuse the folder of all
// run directories, Config if Chrome's user cannot enter the directory, Timeout or
// BrowserFailed if ctx ended first or the system refused.
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
	ord := order{Path: binary, Args: args, Env: environment(o.Dir, o.TimeZone), Dir: o.Dir.Path, UID: -1, Hold: o.Hold, Files: l.files, Until: l.deadline.current()}
	if l.uids != nil {
		ord.UID = o.Dir.UID
		if l.groups == nil {
			ord.Tasks = uint64(o.Limits.Tasks) //nolint:gosec // it is not negative
		}
	}
	group, err := l.newGroup(o)
	if err != nil {
		return nil, err
	}
	if !l.noLandlock {
		ord.Grants = grants(binary, o.Dir)
		// The folder of all run directories contains those of other sessions.
		ord.Denied = append([]string{l.root}, o.denied...)
	}
	var stage *os.File
	var link *netns.Link
	if network := o.Dir.network; network != nil {
		own := network.Order()
		own.Name = o.Dir.Profile()
		ord.Network = &own
		if link, stage, err = network.Connect(); err != nil {
			return nil, errors.Join(err, group.Remove())
		}
	}
	p, reports, err := startWarden(ord, group, stage)
	_ = stage.Close() // the warden has its own; nil without a namespace
	if err != nil {
		link.Close()
		return nil, errors.Join(fault.Wrap(err, fault.BrowserFailed, op, ""), group.Remove())
	}
	p.dir, p.flags, p.link = o.Dir, portable(args), link
	o.Dir.occupy()
	first := make(chan report, 1)
	go p.supervise(reports, first)
	select {
	case r, ok := <-first:
		if !ok {
			r.Errno = syscall.ECHILD // the warden died before its first report
		}
		if r.Unconfined != "" {
			err := fault.Wrap(errors.New(r.Unconfined), fault.SandboxFailed, op, "Landlock does not protect the machine's files from Chrome; "+
				"the binary of --chrome or --shell must be in a folder that contains nothing but Chrome, "+
				"and --data-dir must not be below /dev/shm, which Chrome may use")
			return nil, errors.Join(err, p.discard())
		}
		if r.HoldFailed != "" {
			err := fault.Wrap(errors.New(r.HoldFailed), fault.Unsupported, op, "this system cannot make Chrome's files wait")
			return nil, errors.Join(err, p.discard())
		}
		if r.NetworkFailed != "" {
			return nil, p.networkFailed(fault.BrowserFailed, op, r.NetworkFailed)
		}
		if r.Errno != 0 {
			return nil, errors.Join(startFailed(op, r.Errno, o.Dir), p.discard())
		}
		if err := p.openHandle(r.PID); err != nil {
			return nil, errors.Join(fault.Wrap(err, fault.BrowserFailed, op, ""), p.discard())
		}
		l.deadline.add(p, ord.Until)
		return p, nil
	case <-ctx.Done():
		return nil, errors.Join(startCancelled(op, ctx.Err()), p.discard())
	}
}

// shownErrors is how much of standard error an error shows at most, in bytes from the end.
const shownErrors = 300

// networkFailed discards a Chrome that got no network namespace, and returns why, with what its
// processes wrote to standard error.
func (p *Process) networkFailed(code fault.Code, op, why string) error {
	if err := p.link.Err(); fault.Is(err, fault.Unsupported) { // else it only says that the stage has ended
		why += ": " + fault.MessageOf(err)
	}
	err := p.discard()
	written := p.errors.String()
	if words := strings.Fields(written[max(0, len(written)-shownErrors):]); len(words) > 0 {
		why += " (" + strings.Join(words, " ") + ")"
	}
	return errors.Join(fault.New(code, op, "Chrome cannot have its own network: %s", why), err)
}

// startWarden starts a warden with its order. The warden is in the group before it gets the
// order, and so is Chrome from its first instruction on. stage is the connection for a Chrome
// with a network namespace; nil: it has none. The caller must start supervise for the
// returned process.
func startWarden(o order, group *cgroup.Group, stage *os.File) (*Process, io.ReadCloser, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	var files [8]*os.File // four pipes, each with its reading end and its writing end
	for i := 0; i < len(files); i += 2 {
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			return nil, nil, errors.Join(err, closeAll(files[:i]...))
		}
	}
	requests, answers, lifeline, reports := files[0:2], files[2:4], files[4:6], files[6:8]
	p := &Process{
		pipe: &pipe{r: answers[0], w: requests[1]}, lifeline: lifeline[1], errors: &tail{}, done: make(chan struct{}),
		group: group,
	}
	// This path runs the same program even if the binary's file was replaced.
	p.warden = &exec.Cmd{
		Path: "/proc/self/exe",
		Args: []string{wardenName, WardenArg},
		// Nothing of the daemon's environment. A binary with the race detector would sleep
		// a second at its exit; other binaries ignore this variable.
		Env:         []string{"GORACE=atexit_sleep_ms=0"},
		Dir:         "/",
		ExtraFiles:  []*os.File{requests[0], answers[1], lifeline[0], reports[1]}, // 3, 4, 5, 6
		Stderr:      p.errors,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   time.Second, // for standard error, if the warden was killed and Chrome still runs
	}
	if stage != nil {
		p.warden.ExtraFiles = append(p.warden.ExtraFiles, stage) // 7
	}
	err = p.warden.Start()
	err = errors.Join(err, closeAll(requests[0], answers[1], lifeline[0], reports[1]))
	if err == nil {
		err = group.Add(p.warden.Process.Pid)
	}
	if err == nil {
		_, err = lifeline[1].Write(append(line, '\n'))
	}
	if err != nil {
		err = errors.Join(err, closeAll(answers[0], requests[1], lifeline[1], reports[0]))
		if p.warden.Process != nil {
			err = errors.Join(err, p.warden.Wait()) // it exits when its lifeline closes
		}
		return nil, nil, err
	}
	return p, reports[0], nil
}

// discard ends a process that was not returned to the caller.
func (p *Process) discard() error {
	err := p.pipe.Close()
	return errors.Join(err, p.Kill(context.Background())) // Kill has its own deadline
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
		return fault.Wrap(errno, fault.ChromeMissing, op, "the binary of --chrome or --shell cannot be executed; name another, or "+install)
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
