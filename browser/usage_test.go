package browser

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/cgroup"
)

func TestLimitsWithin(t *testing.T) {
	daemon := Limits{Memory: 4, CPUs: 2, Processes: 0, Disk: 9}
	if got, want := (Limits{Memory: 3, CPUs: 3, Processes: 7}).Within(daemon), (Limits{Memory: 3, CPUs: 2, Processes: 7, Disk: 9}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := (Limits{}).Within(daemon); got != daemon {
		t.Errorf("%+v", got)
	}
}

func newTestUsage(limits Limits) (u *usage, counts *cgroup.Counts, now *time.Time) {
	counts, now = new(cgroup.Counts), new(time.Time)
	*now = time.Unix(1000, 0)
	u = newUsage(nil, limits, func() time.Time { return *now })
	u.counts = func() cgroup.Counts { return *counts }
	return u, counts, now
}

// A limit is reported once in a while, and explains a crash only for seconds.
func TestUsage(t *testing.T) {
	u, counts, now := newTestUsage(Limits{Memory: 100, Processes: 20})
	expect := func(want ...Reached) {
		t.Helper()
		if diff := cmp.Diff(want, u.reach(u.count())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	expect()
	counts.OOMKills = 1
	expect(Reached{LimitMemory, 100})
	expect()
	counts.OOMKills = 2
	expect() // reported a moment ago
	counts.Refused = 1
	expect(Reached{LimitProcesses, 20})
	*now = now.Add(reachedEvery)
	counts.OOMKills = 3
	expect(Reached{LimitMemory, 100})

	why, unreported := u.Reached()
	if diff := cmp.Diff([]Reached{{LimitMemory, 100}}, why); diff != "" || unreported != nil {
		t.Errorf("%s, not reported: %v", diff, unreported)
	}
	*now = now.Add(reachedFor)
	if why, _ := u.Reached(); why != nil {
		t.Errorf("a crash later: %v", why)
	}
	*now = now.Add(reachedEvery)
	counts.Refused = 2
	if _, unreported := u.Reached(); len(unreported) != 1 {
		t.Errorf("not reported: %v", unreported)
	}
}

func TestDiskFull(t *testing.T) {
	dir := &Dir{Path: t.TempDir()}
	u, _, now := newTestUsage(Limits{Disk: 1 << 20})
	if u.diskFull(dir) {
		t.Error("an empty directory")
	}
	fill := func(bytes int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir.Path, "file"), make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill(2 << 20)
	*now = now.Add(diskInterval)
	if !u.diskFull(dir) {
		t.Error("2 MiB in a directory that may have 1")
	}
	if len(u.full) != 1 {
		t.Error("no token")
	}
	u.set(Limits{Disk: 3 << 20})
	if len(u.full) != 0 {
		t.Error("the next session gets the token of the one before")
	}
	if u.diskFull(dir) {
		t.Error("2 MiB in a directory that may have 3")
	}
	// Before the interval, it is measured only if the free space has fallen by much.
	u.set(Limits{Disk: 1 << 50})
	u.diskFull(dir)
	u.disk.used = 100
	u.diskFull(dir)
	if u.disk.used != 100 {
		t.Error("it was measured again")
	}
	u.disk.free += 1 << 50
	u.diskFull(dir)
	if u.disk.used == 100 {
		t.Error("it was not measured although the disk fills")
	}
	u.disk.used, u.disk.freeFiles = 100, u.disk.freeFiles+1<<50
	u.diskFull(dir)
	if u.disk.used == 100 {
		t.Error("it was not measured although the inodes run out")
	}
	u.set(Limits{})
	if u.diskFull(dir) {
		t.Error("no limit")
	}
}

// Empty files and folders count too.
func TestDiskFullOfEmptyFiles(t *testing.T) {
	dir := &Dir{Path: t.TempDir()}
	u, _, _ := newTestUsage(Limits{Disk: 401 * 4096})
	for i := range 200 {
		sub := filepath.Join(dir.Path, strconv.Itoa(i))
		if u.diskFull(dir) {
			t.Fatalf("after %d files and folders", 2*i)
		}
		u.disk.at = time.Time{} // measured each time
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, "empty"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if u.diskFull(dir) {
		t.Error("200 empty files and 201 folders are more than 401")
	}
	if err := os.WriteFile(filepath.Join(dir.Path, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u.disk.at = time.Time{}
	if !u.diskFull(dir) {
		t.Error("one file more")
	}
}

// A token says that the disk is full; nobody has to take it.
func TestWatchDisk(t *testing.T) {
	dir := &Dir{Path: t.TempDir()}
	if err := os.WriteFile(filepath.Join(dir.Path, "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	u, _, _ := newTestUsage(Limits{Disk: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var got []Reached
	u.watch(ctx, dir, func() bool { return false }, func(r Reached) {
		got = append(got, r)
		cancel()
	})
	if diff := cmp.Diff([]Reached{{LimitDisk, 1}}, got); diff != "" || len(u.full) != 1 {
		t.Errorf("%s, %d tokens", diff, len(u.full))
	}
}
