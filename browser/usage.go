package browser

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/browser/cgroup"
	"github.com/stasisd/stasis/browser/fair"
	"github.com/stasisd/stasis/browser/launch"
)

const (
	// usageInterval is how often the use of a session is compared with its limits.
	usageInterval = 500 * time.Millisecond
	// diskInterval is how often the files of a session are measured at least. They are measured
	// earlier if the free space or the free inodes have fallen by half of what the session may
	// still write.
	diskInterval = time.Minute
	// reachedFor is how long after the last sign a limit counts as reached. A process that the
	// kernel kills because of it may end others.
	reachedFor = 5 * time.Second
	// reachedEvery is how often the same limit is reported.
	reachedEvery = 10 * time.Second
)

// Reached is a limit that a session has reached.
type Reached struct {
	Limit string // LimitMemory, LimitProcesses or LimitDisk
	Value int64  // the limit: bytes, or processes and threads
}

// Usage says which limits a Chrome has reached.
type Usage interface {
	// DiskFull receives a value when the session's files have reached their limit.
	DiskFull() <-chan struct{}
	// Reached returns the limits that Chrome reached within the last seconds before now, when
	// it has crashed. unreported are those for which [Browser.Listen] has reported no event.
	Reached() (why, unreported []Reached)
}

// Usage returns which limits Chrome has reached.
func (b *Browser) Usage() Usage { return b.usage }

// usage compares what a Chrome uses with its limits. Its methods are safe for concurrent use.
type usage struct {
	counts func() cgroup.Counts
	now    func() time.Time
	full   chan struct{}               // has a token when the limit of the disk is reached
	member atomic.Pointer[fair.Member] // of the owner's Chromes; nil: it has no owner yet

	mu       sync.Mutex
	limits   Limits
	last     cgroup.Counts
	seen     map[string]time.Time // when a limit was last seen to be reached
	reported map[string]time.Time // when that was last reported
	disk     diskUsage
}

// diskUsage is the last measurement of the files.
type diskUsage struct {
	at                    time.Time // zero: never
	used, free, freeFiles int64     // bytes, as launch.Dir counts them
}

func newUsage(p *launch.Process, limits Limits, now func() time.Time) *usage {
	return &usage{counts: p.Counts, now: now, full: make(chan struct{}, 1), limits: limits, seen: map[string]time.Time{}, reported: map[string]time.Time{}}
}

// join lets the Chrome count as its owner's until ctx ends.
func (u *usage) join(ctx context.Context, shares *fair.Users, owner string, chrome fair.Chrome) {
	if shares == nil || owner == "" || u.member.Load() != nil {
		return
	}
	member := shares.Join(owner, chrome)
	u.member.Store(member)
	context.AfterFunc(ctx, member.Leave)
}

// set replaces the limits, for another session. A token that the session before has not taken
// is not for this one.
func (u *usage) set(l Limits) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limits = l
	u.disk = diskUsage{}
	select {
	case <-u.full:
	default:
	}
}

// watch calls notify for each limit that is reached, until ctx ends. Files of a frozen Chrome
// are not measured.
func (u *usage) watch(ctx context.Context, dir *Dir, frozen func() bool, notify func(Reached)) {
	tick := time.NewTicker(usageInterval)
	defer tick.Stop()
	for {
		u.member.Load().Measure()
		limits := u.count()
		if !frozen() && u.diskFull(dir) {
			limits = append(limits, LimitDisk)
		}
		for _, r := range u.reach(limits) {
			notify(r)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// count returns which limits were reached since the last call, by the kernel's counts.
func (u *usage) count() (limits []string) {
	now := u.counts()
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.OOMKills > u.last.OOMKills {
		limits = append(limits, LimitMemory)
	}
	if now.Refused > u.last.Refused {
		limits = append(limits, LimitProcesses)
	}
	u.last = now
	return limits
}

// reach notes that limits are reached, and returns those that are to be reported now.
func (u *usage) reach(limits []string) (report []Reached) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, limit := range limits {
		u.seen[limit] = u.now()
		if at := u.reported[limit]; at.IsZero() || u.now().Sub(at) >= reachedEvery {
			u.reported[limit] = u.now()
			report = append(report, Reached{limit, u.value(limit)})
		}
	}
	return report
}

func (u *usage) value(limit string) int64 {
	return map[string]int64{LimitMemory: u.limits.Memory, LimitProcesses: u.limits.Processes, LimitDisk: u.limits.Disk}[limit]
}

// diskFull reports whether the files take more than they may. Then full has a token.
func (u *usage) diskFull(dir *Dir) bool {
	free, freeFiles, err := dir.Free()
	u.mu.Lock()
	limit, last := u.limits.Disk, u.disk
	u.mu.Unlock()
	if limit == 0 {
		return false
	}
	if err == nil && !last.at.IsZero() && u.now().Sub(last.at) < diskInterval && max(last.free-free, last.freeFiles-freeFiles) < (limit-last.used)/2 {
		return false
	}
	last = diskUsage{at: u.now(), used: dir.Used(), free: free, freeFiles: freeFiles}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.limits.Disk != limit { // a session has got it meanwhile
		return false
	}
	u.disk = last
	if last.used <= limit {
		return false
	}
	select {
	case u.full <- struct{}{}:
	default: // nobody has taken the last one yet
	}
	return true
}

// Reached implements [Usage].
func (u *usage) Reached() (why, unreported []Reached) {
	unreported = u.reach(u.count())
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, limit := range []string{LimitMemory, LimitProcesses, LimitDisk} {
		if at := u.seen[limit]; !at.IsZero() && u.now().Sub(at) < reachedFor {
			why = append(why, Reached{limit, u.value(limit)})
		}
	}
	return why, unreported
}

// DiskFull implements [Usage].
func (u *usage) DiskFull() <-chan struct{} { return u.full }
