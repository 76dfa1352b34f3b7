package cgroup

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// daemonGroupV1 is the group that the daemon itself moves to, in the tree of the processors
// only. All daemons with the same parent use it.
const daemonGroupV1 = "stasis-daemon"

// cpuPeriod is the time in which a group may use its processors, in microseconds: the
// kernel's own default.
const cpuPeriod = 100_000

// v1 is version 1: each controller has a tree of groups of its own (the kernel's
// Documentation/admin-guide/cgroup-v1).
type v1 struct {
	own map[string]string // the folder of the daemon's group, by controller
	top map[string]string // where the controller is mounted
}

func newV1(folders, tops map[string]string) v1 {
	v := v1{map[string]string{}, map[string]string{}}
	for _, controller := range []string{memory, pids, cpu} {
		if at := folders[controller]; at != "" {
			// A process of a daemon is in the daemon's group.
			v.own[controller], v.top[controller] = strings.TrimSuffix(at, "/"+daemonGroupV1), tops[controller]
		}
	}
	return v
}

// parents lists each folder once: controllers may share a tree.
func (v v1) parents() []string { return unique(v.own) }
func (v v1) tops() []string    { return unique(v.top) }

func unique(by map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(by)))
}

// enter moves the daemon to a group with a larger share of the processors. Nothing else is
// to do: groups with processes can have groups below them.
func (v v1) enter(daemon int, make func(folder string) error) error {
	if !v.hasCPU() {
		return nil
	}
	home := v.home(v.own[cpu])
	for try := 1; ; try++ {
		if err := make(home); err != nil && !errors.Is(err, fs.ErrExist) {
			return unsupported(err, impossible)
		}
		err := v.share(daemonGroupV1, daemonShare)
		if err == nil {
			err = move(daemon, home)
		}
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist) || try == 3: // another daemon that ended has removed it
			return unsupported(err, "the daemon cannot move to a control group below its own: "+remedy)
		}
	}
}

// leave removes the daemon's group, unless another daemon is in it.
func (v v1) leave(daemon int, remove func(folder string) error) error {
	if !v.hasCPU() {
		return nil
	}
	if err := move(daemon, v.own[cpu]); err != nil {
		return err
	}
	if err := remove(v.home(v.own[cpu])); !errors.Is(err, syscall.EBUSY) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (v v1) home(parent string) string {
	if parent == v.own[cpu] {
		return filepath.Join(parent, daemonGroupV1)
	}
	return parent
}
func (v v1) hasCPU() bool { return v.own[cpu] != "" }

func (v v1) file(controller, group, name string) string {
	return filepath.Join(v.own[controller], group, name)
}

func (v v1) limit(group string, l Limits) error {
	if err := v.limitMemory(group, l.Memory); err != nil {
		return err
	}
	if err := write(v.file(pids, group, "pids.max"), orMax(l.Tasks)); err != nil {
		return err
	}
	if !v.hasCPU() {
		return nil
	}
	quota := "-1"
	if l.CPUs > 0 {
		quota = strconv.Itoa(int(l.CPUs * cpuPeriod))
	}
	err := write(v.file(cpu, group, "cpu.cfs_quota_us"), quota)
	if errors.Is(err, fs.ErrNotExist) && l.CPUs == 0 { // a kernel without quotas
		return nil
	}
	return err
}

// limitMemory limits memory, and memory with swap to the same. The kernel refuses a limit
// of memory above that of memory with swap.
func (v v1) limitMemory(group string, bytes int64) error {
	limit := "-1"
	if bytes > 0 {
		limit = strconv.FormatInt(bytes, 10)
	}
	alone, swap := v.file(memory, group, "memory.limit_in_bytes"), v.file(memory, group, "memory.memsw.limit_in_bytes")
	_, err := os.Stat(swap)
	counted := err == nil // the kernel counts swap
	was, wasSwap := read(alone), read(swap)
	if counted {
		if err := write(swap, "-1"); err != nil {
			return err
		}
	}
	if err = write(alone, limit); err == nil && counted {
		err = write(swap, limit)
	}
	if err != nil && counted { // the group keeps its old limits
		err = errors.Join(err, write(alone, was), write(swap, wasSwap))
	}
	if errors.Is(err, syscall.EBUSY) {
		return ErrInUse
	}
	return err
}

// share sets the weight, of which an ordinary group has 1024.
func (v v1) share(group string, percent int) error {
	if !v.hasCPU() {
		return fs.ErrNotExist
	}
	return write(v.file(cpu, group, "cpu.shares"), strconv.Itoa(1024*percent/100))
}

func (v v1) idle(group string, on bool) error {
	if !v.hasCPU() {
		return fs.ErrNotExist
	}
	return writeBool(v.file(cpu, group, "cpu.idle"), on)
}

// cpuTime is not known: it would need groups of one more controller.
func (v v1) cpuTime(string) (time.Duration, bool) { return 0, false }

// counts counts kills only if the group has reached its limit: the kernel also counts those
// for which a group above was the reason.
func (v v1) counts(group string) (c Counts) {
	most := max(number(v.file(memory, group, "memory.max_usage_in_bytes")), number(v.file(memory, group, "memory.memsw.max_usage_in_bytes")))
	// The failure counters stay 0 if memory and memory with swap have the same limit (6.18). The
	// kernel charges memory in batches, so the last ones may be missing.
	if limit := number(v.file(memory, group, "memory.limit_in_bytes")); most >= limit-limit/64 {
		c.OOMKills = field(v.file(memory, group, "memory.oom_control"), "oom_kill")
	}
	c.Refused = field(v.file(pids, group, "pids.events"), "max")
	return c
}

// orMax returns a limit as the kernel reads it.
func orMax(n int64) string {
	if n <= 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}
