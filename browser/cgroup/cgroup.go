// Package cgroup limits what the process tree of a Chrome uses, with the kernel's control
// groups (cgroups(7)). Each Chrome has a group of its own below the daemon's. So limits of the
// daemon's group, such as those of a container, hold for all Chromes together.
//
// Version 1 was tried on real kernels. Version 2 was tried on folders and files only that a
// test makes: no kernel with it was at hand.
package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// Limits are what the processes of a group may use together. 0 is no limit.
type Limits struct {
	Memory int64   // bytes, with the page cache and shared memory of the group
	CPUs   float64 // processors, such as 1.5
	Tasks  int64   // processes and threads
}

// Counts are how often a group has reached its limits.
type Counts struct {
	OOMKills uint64 // processes that the kernel has killed because the group had reached its limit of memory
	Refused  uint64 // processes and threads that were refused because of the limit of tasks
}

// ErrInUse is the error of [Group.Limit] if the group uses more memory than the new limit.
var ErrInUse = errors.New("the processes use more memory already")

// version is a version of the kernel's interface.
type version interface {
	// parents are the folders in which groups are made: one, or one for each controller.
	parents() []string
	// home is the folder, for each parent, of the group that the daemon itself is in.
	home(parent string) string
	// enter prepares the daemon's group, in which the daemon is.
	enter(daemon int, make func(folder string) error) error
	// leave moves the daemon out of a group that enter made and others may need, and removes that.
	leave(daemon int, remove func(folder string) error) error
	limit(group string, l Limits) error
	share(group string, percent int) error
	// idle says whether the group gets only what others leave of the processors.
	idle(group string, on bool) error
	// cpuTime is the CPU time of all processes that were ever in the group; false if the
	// version does not count that.
	cpuTime(group string) (time.Duration, bool)
	counts(group string) Counts
	hasCPU() bool
	// tops are the folders below which leftover groups can be.
	tops() []string
}

// Groups makes groups. Its methods are safe for concurrent use.
type Groups struct {
	version version
	prefix  string // of the names of all groups
	daemon  int    // its process
	folders folders
}

// folders makes and removes the folders of groups. The kernel makes and removes the files
// in them.
type folders struct {
	make   func(path string) error
	remove func(path string) error
}

// kernelFolders are real ones.
var kernelFolders = folders{make: func(path string) error { return os.Mkdir(path, 0o755) }, remove: os.Remove} //nolint:gosec // the kernel's own mode

// Open finds the control groups of this process and checks that groups can be made below
// its own. With version 2 it moves the daemon itself to a group below its own, because only
// groups without processes can have groups with limits. root identifies the daemon: its
// groups have a name that depends on it. Errors: Unsupported, which says what is missing.
func Open(root string) (*Groups, error) {
	v, err := current()
	if err != nil {
		return nil, err
	}
	return open(v, root, os.Getpid(), kernelFolders)
}

func open(v version, root string, pid int, f folders) (*Groups, error) {
	if err := v.enter(pid, f.make); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(root))
	g := &Groups{version: v, prefix: "stasis-" + hex.EncodeToString(sum[:4]) + "-", daemon: pid, folders: f}
	if err := g.try(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// try makes a group with limits, and removes it.
func (g *Groups) try() error {
	probe, err := g.New("probe", Limits{Memory: 1 << 30, Tasks: 1 << 10})
	if err != nil {
		return unsupported(err, impossible)
	}
	return probe.Remove()
}

// Close moves the daemon back to the group that it was started in. All Chromes must have
// ended. It can be repeated.
func (g *Groups) Close() error {
	if g == nil {
		return nil
	}
	return g.version.leave(g.daemon, g.folders.remove)
}

// remedy is how a daemon gets control groups.
const (
	remedy     = "run the daemon as root, or in a systemd unit with Delegate=yes"
	impossible = "control groups cannot be made below the daemon's own: " + remedy
)

// HasCPU reports whether groups have limits and shares of processors.
func (g *Groups) HasCPU() bool { return g.version.hasCPU() }

// New makes a group. name is one path element, unique among the daemon's groups.
func (g *Groups) New(name string, l Limits) (*Group, error) {
	group := &Group{of: g, name: g.prefix + name, share: ordinaryShare}
	for _, parent := range g.version.parents() {
		folder := filepath.Join(parent, group.name)
		err := g.folders.make(folder)
		if errors.Is(err, fs.ErrExist) { // left by a Chrome that was killed; it has no process
			if err = g.removeFolder(folder); err == nil {
				err = g.folders.make(folder)
			}
		}
		if err != nil {
			return nil, errors.Join(err, group.Remove())
		}
	}
	if err := group.Limit(l); err != nil {
		return nil, errors.Join(err, group.Remove())
	}
	return group, nil
}

// Sweep removes the groups that a dead daemon left, wherever it ran. Their processes have
// ended. A group that still has one stays.
func (g *Groups) Sweep() {
	if g == nil {
		return
	}
	for _, top := range g.version.tops() {
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil && entry != nil && entry.IsDir():
				return fs.SkipDir // it was removed meanwhile, or may not be read
			case err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), g.prefix):
				return nil
			}
			_ = g.removeFolder(path) // see above
			return fs.SkipDir
		})
	}
}

// A folder of a group can be removed only after the kernel has freed the last process, which
// takes moments longer than waiting for it (cgroups(7)).
const (
	removeTries = 100
	removePause = 10 * time.Millisecond
)

// removeFolder removes a folder of a group. One that does not exist is no error.
func (g *Groups) removeFolder(folder string) (err error) {
	for range removeTries {
		err = g.folders.remove(folder)
		if !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(removePause)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Group is the group of one Chrome. Its methods are safe for concurrent use. A nil Group has
// no limits and counts nothing.
type Group struct {
	of   *Groups
	name string

	mu      sync.Mutex
	limits  Limits
	share   int  // percent, of an ordinary group's
	yields  bool // see Yield
	ending  bool // see End
	removed bool
	last    Counts // when it was removed
}

// Add moves a process with all its threads into the group. Its later children are in the
// group from their beginning.
func (g *Group) Add(pid int) error {
	if g == nil {
		return nil
	}
	for _, parent := range g.of.version.parents() {
		if err := move(pid, filepath.Join(parent, g.name)); err != nil {
			return err
		}
	}
	return nil
}

// Release moves a process out of the group, to the daemon's own. Its children stay.
func (g *Group) Release(pid int) error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, parent := range g.of.version.parents() {
		errs = append(errs, move(pid, g.of.version.home(parent)))
	}
	return errors.Join(errs...)
}

// Limit replaces the limits. The error is [ErrInUse] if the group uses more memory; then
// the old limits stay.
func (g *Group) Limit(l Limits) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.removed || l == g.limits {
		return nil
	}
	if err := g.of.version.limit(g.name, l); err != nil {
		return err
	}
	g.limits = l
	return nil
}

// Shares of busy processors, in percent of an ordinary group's.
const (
	ordinaryShare = 100
	// daemonShare is that of the daemon itself, because all sessions wait for it.
	daemonShare = 800
	// yieldingShare is that of a group that yields on a kernel without idle groups (before
	// 5.15).
	yieldingShare = 1
)

// Share sets the group's share of busy processors, in percent of an ordinary group's. It
// reports whether groups have shares. A group that yields gets the share afterwards, one that
// ends does not.
func (g *Group) Share(percent int) bool {
	if g == nil || !g.of.HasCPU() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.share = percent
	return g.removed || g.ending || g.yields || g.of.version.share(g.name, percent) == nil
}

// Yield says whether the group gets only what other groups leave of the processors. Whatever
// wakes up in another group takes the processor from it at once (cpu.idle). It reports
// whether groups can yield.
func (g *Group) Yield(on bool) bool {
	if g == nil || !g.of.HasCPU() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ending || g.setYields(on)
}

// End gives the group an ordinary share of the processors until it is removed. A process that
// was killed needs processor time to end: with what others leave, that took more than 15 seconds
// on a busy machine.
func (g *Group) End() {
	if g == nil || !g.of.HasCPU() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.removed || g.ending {
		return
	}
	slowed := g.share != ordinaryShare
	g.ending, g.share = true, ordinaryShare
	if g.yields {
		g.setYields(false)
	} else if slowed {
		_ = g.of.version.share(g.name, ordinaryShare) // without it, the processes end later
	}
}

// setYields is Yield without its lock.
func (g *Group) setYields(on bool) bool {
	if g.removed || g.yields == on {
		return true
	}
	share := g.share
	if on {
		share = yieldingShare
	}
	err := g.of.version.idle(g.name, on)
	if err != nil || !on { // the kernel gives a group that is no longer idle an ordinary share
		err = g.of.version.share(g.name, share)
	}
	if err != nil {
		return false
	}
	g.yields = on
	return true
}

// CPUTime returns the CPU time of all processes that were ever in the group; false if the
// kernel does not count it.
func (g *Group) CPUTime() (time.Duration, bool) {
	if g == nil {
		return 0, false
	}
	return g.of.version.cpuTime(g.name)
}

// Processes returns the IDs of the processes in the group.
func (g *Group) Processes() (ids []int) {
	if g == nil {
		return nil
	}
	parents := g.of.version.parents()
	for id := range strings.FieldsSeq(read(filepath.Join(parents[len(parents)-1], g.name, "cgroup.procs"))) {
		if pid, err := strconv.Atoi(id); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

// Counts returns the counts until now; after its removal, those until then.
func (g *Group) Counts() Counts {
	if g == nil {
		return Counts{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.removed {
		return g.last
	}
	return g.of.version.counts(g.name)
}

// Remove removes the group. None of its processes may be left. It can be repeated.
func (g *Group) Remove() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.removed {
		return nil
	}
	g.last = g.of.version.counts(g.name)
	var errs []error
	for _, parent := range g.of.version.parents() {
		errs = append(errs, g.of.removeFolder(filepath.Join(parent, g.name)))
	}
	err := errors.Join(errs...)
	g.removed = err == nil
	return err
}

// move moves a process with all its threads into the group of a folder.
func move(pid int, folder string) error {
	return write(filepath.Join(folder, "cgroup.procs"), strconv.Itoa(pid))
}

// write writes a value to a file of the kernel, which exists.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// writeBool writes 1 or 0 to a file of the kernel, which exists.
func writeBool(file string, on bool) error {
	if on {
		return write(file, "1")
	}
	return write(file, "0")
}

// read returns the text of a file of the kernel; "" if it cannot be read.
func read(file string) string {
	raw, _ := os.ReadFile(file) // a group may lack it, or may have been removed
	return strings.TrimSpace(string(raw))
}

// number returns the number in a file of the kernel; 0 if there is none.
func number(file string) int64 {
	n, _ := strconv.ParseInt(read(file), 10, 64)
	return n
}

// field returns the number after a name in a file with one name in each line; 0 if there is
// none.
func field(file, name string) uint64 {
	for line := range strings.Lines(read(file)) {
		if value, is := strings.CutPrefix(line, name+" "); is {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}

func unsupported(err error, text string) error {
	return &fault.Error{Code: fault.Unsupported, Op: "cgroup.open", Message: text, Err: err}
}
