package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemonGroup is the group that the daemon itself moves to. A systemd unit with
// DelegateSubgroup=daemon starts it there.
const daemonGroup = "daemon"

// v2 is version 2: one tree for all controllers (the kernel's
// Documentation/admin-guide/cgroup-v2.rst). A group whose children have controllers has no
// processes itself.
type v2 struct {
	own, top string // the folder of the delegated group, and where the tree is mounted
	cpu      bool
}

func newV2(own, top string) (version, error) {
	if filepath.Base(own) == daemonGroup {
		own = filepath.Dir(own)
	}
	available := strings.Fields(read(filepath.Join(own, "cgroup.controllers")))
	for _, needed := range []string{memory, pids} {
		if !slices.Contains(available, needed) {
			return nil, unsupported(nil, "the controller "+needed+" is not delegated to the daemon's control group: "+remedy)
		}
	}
	return v2{own: own, top: top, cpu: slices.Contains(available, cpu)}, nil
}

// enter moves the daemon to [daemonGroup] and turns the controllers on for its siblings.
func (v v2) enter(daemon int, make func(folder string) error) error {
	home := v.home(v.own)
	err := make(home)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = move(daemon, home)
	}
	if err != nil {
		return unsupported(err, "the daemon cannot move to a control group below its own: "+remedy)
	}
	if err := v.enable(); err != nil {
		back := move(daemon, v.own)
		why := "controllers cannot be turned on below the daemon's control group: " + remedy
		if errors.Is(err, syscall.EBUSY) {
			why = "other processes are in the daemon's control group, so it cannot have groups with limits: " + remedy
		}
		return unsupported(errors.Join(err, back), why)
	}
	return nil
}

// enable turns controllers on for the groups of Chromes, and gives the daemon its share.
func (v v2) enable() error {
	controllers := "+" + memory + " +" + pids
	if v.cpu {
		controllers += " +" + cpu
	}
	err := write(filepath.Join(v.own, "cgroup.subtree_control"), controllers)
	if err == nil && v.cpu {
		err = v.share(daemonGroup, daemonShare)
	}
	return err
}

// leave does nothing: a group with controllers for others cannot have the daemon again.
func (v v2) leave(int, func(string) error) error { return nil }

func (v v2) parents() []string         { return []string{v.own} }
func (v v2) tops() []string            { return []string{v.top} }
func (v v2) home(parent string) string { return filepath.Join(parent, daemonGroup) }
func (v v2) hasCPU() bool              { return v.cpu }

func (v v2) file(group, name string) string { return filepath.Join(v.own, group, name) }

func (v v2) limit(group string, l Limits) error {
	// The kernel would kill processes of a group that uses more.
	if anonymous := field(v.file(group, "memory.stat"), "anon"); l.Memory > 0 && anonymous > uint64(l.Memory) {
		return ErrInUse
	}
	if err := write(v.file(group, "memory.max"), orMax(l.Memory)); err != nil {
		return err
	}
	err := write(v.file(group, "memory.swap.max"), orMax(l.Memory))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without swap
		return err
	}
	if err := write(v.file(group, "pids.max"), orMax(l.Tasks)); err != nil || !v.cpu {
		return err
	}
	quota := "max"
	if l.CPUs > 0 {
		quota = strconv.Itoa(int(l.CPUs * cpuPeriod))
	}
	return write(v.file(group, "cpu.max"), fmt.Sprint(quota, " ", cpuPeriod))
}

// share sets the weight, of which an ordinary group has 100.
func (v v2) share(group string, percent int) error {
	if !v.cpu {
		return fs.ErrNotExist
	}
	return write(v.file(group, "cpu.weight"), strconv.Itoa(percent))
}

func (v v2) idle(group string, on bool) error {
	if !v.cpu {
		return fs.ErrNotExist
	}
	return writeBool(v.file(group, "cpu.idle"), on)
}

// cpuTime is counted also without the controller.
func (v v2) cpuTime(group string) (time.Duration, bool) {
	used := field(v.file(group, "cpu.stat"), "usage_usec")
	return time.Duration(used) * time.Microsecond, used > 0
}

// counts counts kills only if the group has reached its limit, as version 1 does.
func (v v2) counts(group string) (c Counts) {
	if events := v.file(group, "memory.events"); field(events, "max") > 0 {
		c.OOMKills = field(events, "oom_kill")
	}
	c.Refused = field(v.file(group, "pids.events"), "max")
	return c
}
