//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"github.com/dustin/go-humanize/english"

	"github.com/stasisd/stasis/browser/cgroup"
	"github.com/stasisd/stasis/browser/firewall"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/confine"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
)

// doctorCmd checks whether this machine can run the daemon, and says what to do where it
// cannot. It changes nothing, and may run beside the daemon.
type doctorCmd struct {
	DataDir string `help:"Directory for all data; by default ~/.local/share/stasis, as root /var/lib/stasis." placeholder:"DIR"`
	Chrome  string `help:"Chrome's binary; by default the usual paths are searched." placeholder:"PATH"`
	Shell   string `help:"The headless shell's binary; by default the usual paths are searched." placeholder:"PATH"`
	Listen  string `help:"The address that the daemon is to listen on." default:"127.0.0.1:8080"`
	UIDBase int    `help:"As root: the uid that the Chrome of the check runs as. No other Chrome may have it." default:"211999" name:"check-uid" env:"-"`
}

// finding is the result of a check. advice "" means that all is well.
type finding struct {
	name, found, advice string
	serious             bool // the daemon does not run, or loses its protection
}

// Run prints a line for each check. It fails if the daemon would not run here.
func (c *doctorCmd) Run(ctx context.Context) error {
	dir, err := dataDirOf(c.DataDir)
	if err != nil {
		return err
	}
	serious := 0
	for _, check := range []func() finding{
		func() finding { return c.chrome(ctx) }, c.shellEngine, landlock, addresses, sessionLimits, func() finding { return c.uploads(ctx) }, memory, func() finding { return disk(dir) },
		openFiles, func() finding { return c.port(ctx, dir) }, func() finding { return running(ctx, dir) }, controlGroups, clock,
	} {
		f := check()
		mark := "ok  "
		switch {
		case f.advice != "" && f.serious:
			mark = "FAIL"
			serious++
		case f.advice != "":
			mark = "warn"
		}
		line := fmt.Sprintf("%s  %-14s %s", mark, f.name, f.found)
		if f.advice != "" {
			line += "\n                     → " + f.advice
		}
		if _, err := fmt.Fprintln(os.Stdout, line); err != nil {
			return err
		}
	}
	if serious > 0 {
		return exitError{exitFailed, english.Plural(serious, "check", "") + " failed: the daemon does not run well on this machine yet"}
	}
	return nil
}

// chrome starts Chrome once as sessions do, with its sandbox and Landlock, in a directory of the
// check alone.
func (c *doctorCmd) chrome(ctx context.Context) finding {
	f := finding{name: "Chrome", serious: true}
	root, err := os.MkdirTemp("", "stasis-doctor-")
	if err == nil {
		defer func() { _ = os.RemoveAll(root) }() // the directories of the check are empty by then
		err = os.Chmod(root, 0o711)               // Chrome's user must enter it
	}
	var v launch.Version
	if err == nil {
		var l *launch.Launcher
		if l, err = launch.New(launch.Config{Binary: c.Chrome, Shell: c.Shell, Root: filepath.Join(root, "run"), UIDs: launch.UIDRange{Base: c.UIDBase, Count: 1},
			NoLandlock: launch.LandlockABI() == 0}); err == nil {
			v, err = l.Preflight(ctx)
		}
	}
	if err != nil {
		f.found, f.advice = "does not start", fault.MessageOf(err)
		return f
	}
	f.found = v.Name + " " + v.Full + " starts, and its sandbox is on (" + v.Binary + ")"
	return f
}

// shellEngine looks for the headless shell.
func (c *doctorCmd) shellEngine() finding {
	f := finding{name: "headless shell"}
	l, err := launch.New(launch.Config{Binary: c.Chrome, Shell: c.Shell, Root: os.TempDir(), UIDs: launch.UIDRange{Base: c.UIDBase, Count: 1}})
	if err == nil {
		err = l.HasShell()
	}
	if err != nil {
		f.found, f.advice = "missing: sessions with engine shell cannot start", fault.MessageOf(err)
		return f
	}
	f.found = l.Shell()
	return f
}

func landlock() finding {
	abi := launch.LandlockABI()
	f := finding{name: "Landlock", found: fmt.Sprintf("version %d of the kernel's interface", abi), serious: true}
	if abi == 0 {
		f.found, f.advice = "missing in this kernel", "use Linux 5.19 or newer with landlock in the boot parameter lsm=, or start with --no-landlock: then pages can read every file that Chrome's user can read"
	}
	return f
}

// addresses checks whether browsers can be kept from addresses. It is not serious: the daemon
// says so too, and --egress required makes it serious.
func addresses() finding {
	f := finding{name: "addresses", found: "nftables can keep browsers from the network around this machine"}
	if os.Geteuid() != 0 {
		f.found = "network namespaces and pasta can keep browsers from the network around this machine"
		if _, err := openNetworks(context.Background(), egress.Policy{}); err != nil {
			f.found, f.advice = "not limited: pages can reach what this user can", fault.MessageOf(err)+"; or run the daemon as root"
		}
	} else if err := firewall.Supported(); err != nil {
		f.found, f.advice = "not limited: pages can reach what this machine can", fault.MessageOf(err)
	}
	return f
}

// sessionLimits checks whether control groups can limit sessions. It is not serious, as
// addresses.
func sessionLimits() finding {
	f := finding{name: "session limits", found: "control groups can limit the memory, processes and processors of sessions"}
	if err := cgroup.Supported(); err != nil {
		f.found, f.advice = "no control groups here: a session can take all memory of the machine", fault.MessageOf(err)
	}
	return f
}

// uploads starts a process as the daemon does to read an upload. It is not serious: the daemon
// says so too, and who may upload is known.
func (c *doctorCmd) uploads(ctx context.Context) finding {
	f := finding{name: "uploads", found: "are read by processes without rights"}
	confiner, err := confine.New(ctx, c.UIDBase, slog.New(slog.DiscardHandler))
	if err != nil {
		f.found, f.advice, f.serious = "no process can be started that reads them", fault.MessageOf(err), true
		return f
	}
	if missing := confiner.Layers().Missing(); len(missing) > 0 {
		f.found = "are read by processes that have more rights than they need: no " + strings.Join(missing, ", no ")
		f.advice = "use Linux 5.19 or newer, with Landlock, seccomp and user namespaces, or import only files of people whom you trust"
	}
	return f
}

func memory() finding {
	f := finding{name: "memory"}
	bytes, err := availableMemory()
	if err != nil {
		f.found, f.advice = "unknown", err.Error()
		return f
	}
	sessions := sessionsIn(bytes)
	f.found = fmt.Sprintf("%s available, for some %d sessions", humanize.IBytes(uint64(bytes)), sessions) //nolint:gosec // it is not negative
	if sessions < 2 {
		f.advice = "give the machine or the container more memory: a Chrome needs some 400 MiB"
	}
	return f
}

// lowDisk is the free space below which saves of large profiles fail soon, in bytes.
const lowDisk = 2 << 30

// disk checks the space of the data directory, or of its nearest folder that exists.
func disk(dir string) finding {
	f := finding{name: "disk"}
	var at syscall.Statfs_t
	for at.Blocks == 0 {
		if err := syscall.Statfs(dir, &at); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	free := at.Bavail * uint64(at.Bsize) //nolint:gosec // it is a size
	f.found = fmt.Sprintf("%s free in %s", humanize.IBytes(free), dir)
	if free < lowDisk {
		f.advice = "make room, or use another --data-dir or --store: saves fail when the disk is full"
	}
	return f
}

// fewFiles is how many open files a daemon with a few dozen sessions needs.
const fewFiles = 4096

func openFiles() finding {
	f := finding{name: "open files"}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		f.found, f.advice = "unknown", err.Error()
		return f
	}
	f.found = fmt.Sprintf("at most %d", limit.Max)
	if limit.Max < fewFiles {
		f.advice = "raise the limit, for example with LimitNOFILE=65536 in the unit: the daemon accepts half as many connections"
	}
	return f
}

// port checks that the daemon can listen.
func (c *doctorCmd) port(ctx context.Context, dir string) finding {
	f := finding{name: "port", serious: true}
	if l := findLocal(dir); l != nil {
		f.found = "the daemon of " + dir + " listens at " + l.at.URL
		return f
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		f.found, f.advice = c.Listen+" cannot be used: "+err.Error(), "stop the other program, or use another address with --listen"
		return f
	}
	_ = listener.Close() // nothing was accepted
	f.found = c.Listen + " is free"
	return f
}

// running asks the daemon of the data directory, which checks its catalogue and store.
func running(ctx context.Context, dir string) finding {
	f := finding{name: "daemon", serious: true}
	l := findLocal(dir)
	if l == nil {
		f.found = "none runs on " + dir + "; stasis serve starts one, and checks its catalogue and store"
		return f
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.at.URL+"/readyz", nil)
	if err == nil {
		var res *http.Response
		if res, err = http.DefaultClient.Do(req); err == nil {
			defer func() { _ = res.Body.Close() }() // it is not read
			if res.StatusCode != http.StatusOK {
				err = errors.New("it answers " + res.Status + " at /readyz")
			}
		}
	}
	if err != nil {
		f.found, f.advice = "does not take sessions: "+err.Error(), "see its log; docs/troubleshooting.md explains the errors"
		return f
	}
	f.found = "ready"
	return f
}

func controlGroups() finding {
	f := finding{name: "cgroups", found: "version 1, or none: a memory limit of a container is not seen, so set --max-sessions"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		f.found = "version 2"
	}
	return f
}

// clock checks that the kernel's clock is synchronized: expiry times of logins and keys depend on
// it (adjtimex(2)).
func clock() finding {
	f := finding{name: "clock", found: time.Now().Format(time.RFC3339)}
	var t unix.Timex
	if state, err := unix.Adjtimex(&t); err == nil && state == unix.TIME_ERROR {
		f.advice = "the clock is not synchronized: run chrony or systemd-timesyncd if it may be wrong"
	}
	return f
}
