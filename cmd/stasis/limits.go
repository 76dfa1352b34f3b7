//go:build linux

package main

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/cgroup"
	"github.com/stasisd/stasis/fault"
)

// The values of --session-limits.
const (
	limitsRequired = "required"
	limitsOff      = "off"
)

// limitFlags say what the browser of each session may use.
type limitFlags struct {
	SessionLimits    string      `help:"Limit what each session's browser uses with control groups: auto if the system can, required to not start if it cannot, or off." enum:"auto,required,off" default:"auto"`
	SessionMemory    memoryLimit `help:"Memory of each session's browser, in bytes, or none for no limit; by default 4 GiB, or half of the machine's memory if that is less." placeholder:"BYTES"`
	SessionCPUs      float64     `help:"Processors of each session's browser, such as 1.5; 0 for no limit. Busy processors are divided among users in any case." default:"0" name:"session-cpus"`
	SessionProcesses int64       `help:"Processes and threads of each session's browser together; 0 for no limit." default:"4096"`
	SessionFiles     int         `help:"Files that each process of a browser may have open; 0 for as many as the daemon." default:"8192"`
	SessionDisk      memoryLimit `help:"Disk for each session's profile, downloads and uploads, in bytes, or none for no limit; by default 4 GiB. A session that takes more ends." placeholder:"BYTES"`
}

// The defaults, in bytes.
const (
	usualSessionMemory = 4 << 30
	usualSessionDisk   = 4 << 30
)

// leastSessionFiles is the least number of files with which Chrome starts and shows pages.
const leastSessionFiles = 1024

// check refuses limits with which no session would work.
func (f *limitFlags) check() error {
	const op = "serve"
	switch {
	case f.SessionMemory > 0 && f.SessionMemory < browser.LeastMemory:
		return fault.New(fault.Config, op, "--session-memory: must be %d or more, or none", browser.LeastMemory)
	case f.SessionDisk > 0 && f.SessionDisk < browser.LeastDisk:
		return fault.New(fault.Config, op, "--session-disk: must be %d or more, or none", browser.LeastDisk)
	case f.SessionCPUs != 0 && f.SessionCPUs < browser.LeastCPUs:
		return fault.New(fault.Config, op, "--session-cpus: must be %g or more, or 0 for no limit", browser.LeastCPUs)
	case f.SessionProcesses != 0 && f.SessionProcesses < browser.LeastProcesses:
		return fault.New(fault.Config, op, "--session-processes: must be %d or more, or 0 for no limit", browser.LeastProcesses)
	case f.SessionFiles != 0 && f.SessionFiles < leastSessionFiles:
		return fault.New(fault.Config, op, "--session-files: must be %d or more, or 0 for as many as the daemon", leastSessionFiles)
	}
	return nil
}

// groups returns the control groups for the Chromes of a data directory. It returns nil if
// they are off, or not required and the system has none.
func (c *serveCmd) groups(dir string, log *slog.Logger) (*cgroup.Groups, error) {
	if c.SessionLimits == limitsOff {
		log.Warn("the memory, processes and processors of sessions are not limited (--session-limits off)")
		return nil, nil
	}
	root := filepath.Join(dir, runFolder)
	if real, err := filepath.EvalSymlinks(dir); err == nil { // the spelling of the path must not matter
		root = filepath.Join(real, runFolder)
	}
	opened, err := cgroup.Open(root)
	switch {
	case err == nil:
		return opened, c.checkProcessors(opened.HasCPU(), log)
	case c.SessionLimits == limitsRequired:
		return nil, fault.Wrap(err, fault.Config, "serve.limits", "--session-limits required: "+fault.MessageOf(err))
	}
	held := "a session can take all memory, processors and processes of the machine"
	if os.Geteuid() == 0 {
		held = "a session can take all memory and processors of the machine"
	}
	log.Warn("control groups do not limit sessions: "+held, "reason", fault.MessageOf(err))
	return nil, nil
}

// checkProcessors warns that control groups without the controller cpu do not limit processors.
// If limits are required, it returns an error.
func (f *limitFlags) checkProcessors(has bool, log *slog.Logger) error {
	const missing = "--session-cpus: the controller cpu is missing"
	switch {
	case f.SessionCPUs == 0 || has:
		return nil
	case f.SessionLimits == limitsRequired:
		return fault.New(fault.Config, "serve.limits", "--session-limits required: "+missing)
	}
	log.Warn("control groups limit the memory and processes of sessions, but not their processors", "reason", missing)
	return nil
}

// sessionLimits returns the limits of each session.
func (f *limitFlags) sessionLimits() browser.Limits {
	l := browser.Limits{Memory: int64(f.SessionMemory), CPUs: f.SessionCPUs, Processes: f.SessionProcesses, Disk: int64(f.SessionDisk)}
	if l.Memory == 0 {
		l.Memory = usualSessionMemory
		if total, err := totalMemory(); err == nil {
			l.Memory = max(min(l.Memory, total/2), browser.LeastMemory)
		}
	}
	if l.Disk == 0 {
		l.Disk = usualSessionDisk
	}
	l.Memory, l.Disk = max(l.Memory, 0), max(l.Disk, 0) // negative: none
	return l
}

// inForce returns those limits of each session that the daemon puts in place, as attributes of a
// log entry. Without control groups that is the disk, and for root the number of processes.
func inForce(l browser.Limits, groups, processors, root bool) []any {
	attributes := []any{"control_groups", groups, "session_disk", l.Disk}
	if groups {
		attributes = append(attributes, "session_memory", l.Memory)
	}
	if processors {
		attributes = append(attributes, "session_cpus", l.CPUs)
	}
	if groups || root {
		attributes = append(attributes, "session_processes", l.Processes)
	}
	return attributes
}
