package cgroup

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
)

// made is a tree of groups in a temporary folder. It stands in for the kernel: a new group
// has files, and only a group without processes and groups can be removed.
type made struct {
	t     *testing.T
	files map[string]string // of a new group
}

func (m made) folders() folders {
	return folders{
		make: func(path string) error {
			if err := os.Mkdir(path, 0o755); err != nil {
				return err
			}
			m.fill(path)
			return nil
		},
		remove: func(path string) error {
			if _, err := os.Stat(path); err != nil {
				return err
			}
			return os.RemoveAll(path)
		},
	}
}

func (m made) fill(path string) {
	m.t.Helper()
	for name, text := range m.files {
		m.set(filepath.Join(path, name), text)
	}
}

func (m made) set(file, text string) {
	m.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m made) expect(folder string, want map[string]string) {
	m.t.Helper()
	for name, text := range want {
		if got := read(filepath.Join(folder, name)); got != text {
			m.t.Errorf("%s of %s has %q, want %q", name, filepath.Base(folder), got, text)
		}
	}
}

func (m made) mkdir(path string) string {
	m.t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		m.t.Fatal(err)
	}
	m.fill(path)
	return path
}

var newGroupV2 = map[string]string{"cgroup.procs": "", "cgroup.controllers": "cpu io memory pids", "cgroup.subtree_control": "", "memory.max": "max",
	"memory.swap.max": "max", "memory.stat": "anon 0", "memory.events": "max 0\noom_kill 0", "pids.max": "max", "pids.events": "max 0", "cpu.max": "max 100000", "cpu.weight": "100", "cpu.idle": "0", "cpu.stat": "usage_usec 0\nuser_usec 0"}

func TestVersion2(t *testing.T) {
	for name, at := range map[string]string{"in the unit's group": "/system.slice/stasis.service", "in a subgroup that systemd made": "/system.slice/stasis.service/daemon"} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			m := made{t, newGroupV2}
			m.mkdir(filepath.Join(top, at))
			own := m.mkdir(filepath.Join(top, "system.slice/stasis.service"))
			v, err := find("0::"+at+"\n", "29 23 0:26 / "+top+" rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
			if err != nil {
				t.Fatal(err)
			}
			groups, err := open(v, "/data/run", 77, m.folders())
			if err != nil {
				t.Fatal(err)
			}
			m.expect(own, map[string]string{"cgroup.subtree_control": "+memory +pids +cpu", "cgroup.procs": ""})
			m.expect(filepath.Join(own, "daemon"), map[string]string{"cgroup.procs": "77", "cpu.weight": "800"})

			group, err := groups.New("a", Limits{Memory: 1 << 30, CPUs: 1.5, Tasks: 100})
			if err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(own, group.name)
			m.expect(folder, map[string]string{"memory.max": "1073741824", "memory.swap.max": "1073741824", "pids.max": "100", "cpu.max": "150000 100000"})
			if err := group.Add(5); err != nil {
				t.Error(err)
			}
			m.expect(folder, map[string]string{"cgroup.procs": "5"})
			if err := group.Release(5); err != nil {
				t.Error(err)
			}
			m.expect(filepath.Join(own, "daemon"), map[string]string{"cgroup.procs": "5"})
			group.Share(10)
			m.expect(folder, map[string]string{"cpu.weight": "10"})
			checkYield(m, group, folder, map[string]string{"cpu.weight": "100"})
			m.set(filepath.Join(folder, "cpu.stat"), "usage_usec 1500000\nuser_usec 3")
			if used, known := group.CPUTime(); used != 1500*time.Millisecond || !known {
				t.Errorf("a CPU time of %s, %v", used, known)
			}

			m.set(filepath.Join(folder, "memory.events"), "low 0\nmax 0\noom 0\noom_kill 2\n")
			m.set(filepath.Join(folder, "pids.events"), "max 9\n")
			if got := group.Counts(); got != (Counts{Refused: 9}) {
				t.Errorf("%+v: a group that did not reach its limit of memory", got)
			}
			m.set(filepath.Join(folder, "memory.events"), "low 0\nmax 30\noom 2\noom_kill 2\n")
			if got := group.Counts(); got != (Counts{OOMKills: 2, Refused: 9}) {
				t.Errorf("%+v", got)
			}
			m.set(filepath.Join(folder, "memory.stat"), "anon 4096\nfile 9\n")
			if err := group.Limit(Limits{Memory: 4095}); !errors.Is(err, ErrInUse) {
				t.Errorf("a limit below what is used: %v", err)
			}
			m.expect(folder, map[string]string{"memory.max": "1073741824"})
			if err := group.Limit(Limits{}); err != nil {
				t.Error(err)
			}
			m.expect(folder, map[string]string{"memory.max": "max", "memory.swap.max": "max", "pids.max": "max", "cpu.max": "max 100000"})
			checkRemoval(t, groups, group, folder)

			m.mkdir(filepath.Join(top, "elsewhere", group.name))
			other := m.mkdir(filepath.Join(top, "elsewhere", "stasis-00000000-a"))
			groups.Sweep()
			if left, _ := filepath.Glob(filepath.Join(top, "*/"+groups.prefix+"*")); len(left) > 0 {
				t.Errorf("left after a sweep: %v", left)
			}
			if _, err := os.Stat(other); err != nil {
				t.Errorf("a sweep removed a group of another daemon: %v", err)
			}
			closed(t, groups)
		})
	}
}

// A removed group keeps its counts, and its name can be used again.
func checkRemoval(t *testing.T, groups *Groups, group *Group, folders ...string) {
	t.Helper()
	was := group.Counts()
	for range 2 {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	}
	for _, folder := range folders {
		if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", folder, err)
		}
	}
	if got := group.Counts(); got != was {
		t.Errorf("%+v after the removal, %+v before", got, was)
	}
	if err := group.Limit(Limits{Tasks: 1}); err != nil {
		t.Errorf("a limit of a removed group: %v", err)
	}
	for range 2 { // the second finds the folder of the first, which nobody removed
		if _, err := groups.New(strings.TrimPrefix(group.name, groups.prefix), Limits{}); err != nil {
			t.Error(err)
		}
	}
}

func TestVersion2NotDelegated(t *testing.T) {
	top := t.TempDir()
	few := map[string]string{"cgroup.procs": "", "cgroup.controllers": "cpu pids"}
	made{t, few}.mkdir(filepath.Join(top, "user"))
	_, err := find("0::/user\n", "29 23 0:26 / "+top+" rw - cgroup2 cgroup2 rw\n")
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "memory") {
		t.Errorf("without the controller memory: %v", err)
	}

	all := made{t, map[string]string{"cgroup.procs": "", "cgroup.controllers": "memory pids"}}
	all.mkdir(filepath.Join(top, "shell"))
	v, err := find("0::/shell\n", "29 23 0:26 / "+top+" rw - cgroup2 cgroup2 rw\n")
	if err != nil {
		t.Fatal(err)
	}
	denied := folders{make: func(string) error { return fs.ErrPermission }, remove: os.Remove}
	if _, err := open(v, "/data", 7, denied); !fault.Is(err, fault.Unsupported) {
		t.Errorf("a group of another user: %v", err)
	}
	// The kernel turns no controllers on while the group has other processes.
	if _, err := open(v, "/data", 7, all.folders()); !fault.Is(err, fault.Unsupported) {
		t.Errorf("without cgroup.subtree_control: %v", err)
	}
	all.expect(filepath.Join(top, "shell"), map[string]string{"cgroup.procs": "7"})
	if v.hasCPU() {
		t.Error("processors are limited without the controller")
	}
}

func TestVersion1(t *testing.T) {
	top := t.TempDir()
	m := made{t, map[string]string{"cgroup.procs": "", "memory.limit_in_bytes": "9", "memory.memsw.limit_in_bytes": "9", "memory.max_usage_in_bytes": "8",
		"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0", "pids.max": "max", "pids.events": "max 0", "cpu.shares": "1024", "cpu.idle": "0", "cpu.cfs_quota_us": "-1"}}
	own, mounts := "", ""
	for i, line := range []string{"memory /box /docker/1 /docker/1/box", "pids /box /docker/1 /docker/1/box", "cpu,cpuacct / / /"} {
		parts := strings.Fields(line)
		own += strconv.Itoa(i) + ":" + parts[0] + ":" + parts[3] + "\n"
		at := filepath.Join(top, parts[0])
		mounts += "30 24 0:26 " + parts[2] + " " + at + " rw,nosuid - cgroup cgroup rw," + parts[0] + "\n"
		m.mkdir(filepath.Join(at, parts[1]))
	}
	own += "0::/\n"
	v, err := find(own, mounts)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := open(v, "/data/run", 77, m.folders())
	if err != nil {
		t.Fatal(err)
	}
	group, err := groups.New("a", Limits{Memory: 1 << 30, CPUs: 0.5, Tasks: 100})
	if err != nil {
		t.Fatal(err)
	}
	inMemory, inPids, inCPU := filepath.Join(top, "memory/box", group.name), filepath.Join(top, "pids/box", group.name), filepath.Join(top, "cpu,cpuacct", group.name)
	m.expect(inMemory, map[string]string{"memory.limit_in_bytes": "1073741824", "memory.memsw.limit_in_bytes": "1073741824"})
	m.expect(inPids, map[string]string{"pids.max": "100"})
	m.expect(inCPU, map[string]string{"cpu.cfs_quota_us": "50000"})
	m.set(filepath.Join(inMemory, "memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
	m.set(filepath.Join(inPids, "pids.events"), "max 4\n")
	if got := group.Counts(); got != (Counts{Refused: 4}) {
		t.Errorf("%+v: a group that did not reach its limit of memory", got)
	}
	m.set(filepath.Join(inMemory, "memory.max_usage_in_bytes"), "1073741824")
	if got := group.Counts(); got != (Counts{OOMKills: 3, Refused: 4}) {
		t.Errorf("%+v", got)
	}
	group.Share(10)
	m.expect(inCPU, map[string]string{"cpu.shares": "102"})
	checkYield(m, group, inCPU, map[string]string{"cpu.shares": "1024"})
	m.expect(filepath.Join(top, "cpu,cpuacct/stasis-daemon"), map[string]string{"cgroup.procs": "77", "cpu.shares": "8192"})
	if v, err = find(strings.ReplaceAll(own, "cpu,cpuacct:/\n", "cpu,cpuacct:/stasis-daemon\n"), mounts); err != nil {
		t.Fatal(err)
	}
	if again, err := open(v, "/data/run", 78, m.folders()); err != nil || !slices.Equal(again.version.parents(), groups.version.parents()) {
		t.Errorf("a daemon that a daemon's process starts: %v", err)
	}
	if err := errors.Join(group.Add(5), group.Limit(Limits{})); err != nil {
		t.Error(err)
	}
	m.expect(inMemory, map[string]string{"cgroup.procs": "5", "memory.limit_in_bytes": "-1"})
	m.expect(inPids, map[string]string{"cgroup.procs": "5", "pids.max": "max"})
	m.expect(inCPU, map[string]string{"cgroup.procs": "5", "cpu.cfs_quota_us": "-1"})
	if err := group.Release(5); err != nil {
		t.Error(err)
	}
	m.expect(filepath.Join(top, "memory/box"), map[string]string{"cgroup.procs": "5"})
	m.expect(filepath.Join(top, "cpu,cpuacct/stasis-daemon"), map[string]string{"cgroup.procs": "5"})
	checkRemoval(t, groups, group, inMemory, inPids, inCPU)
	groups.Sweep()
	for _, controller := range []string{"memory/box", "pids/box", "cpu,cpuacct"} {
		if left, _ := filepath.Glob(filepath.Join(top, controller, groups.prefix+"*")); len(left) > 0 {
			t.Errorf("left after a sweep: %v", left)
		}
	}
	closed(t, groups)
	m.expect(filepath.Join(top, "cpu,cpuacct"), map[string]string{"cgroup.procs": "77"})
	if _, err := os.Stat(filepath.Join(top, "cpu,cpuacct/stasis-daemon")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the daemon's group after its end: %v", err)
	}
}

// closed closes groups twice.
func closed(t *testing.T, groups *Groups) {
	t.Helper()
	if err := errors.Join(groups.Close(), groups.Close()); err != nil {
		t.Error(err)
	}
}

// checkYield lets a group yield and no longer yield. It expects an ordinary share at the end.
// A share that is set meanwhile waits.
func checkYield(m made, group *Group, folder string, ordinary map[string]string) {
	m.t.Helper()
	share := func() (text string) {
		for name := range ordinary {
			text = read(filepath.Join(folder, name))
		}
		return text
	}
	small := share()
	if !group.Yield(true) || !group.Share(100) {
		m.t.Error("no group can yield")
	}
	m.expect(folder, map[string]string{"cpu.idle": "1"})
	if now := share(); now != small {
		m.t.Errorf("the share of a group that yields was set to %s", now)
	}
	if !group.Yield(false) {
		m.t.Error("the group yields for ever")
	}
	m.expect(folder, ordinary)
	m.expect(folder, map[string]string{"cpu.idle": "0"})

	// A kernel without idle groups.
	if err := os.Remove(filepath.Join(folder, "cpu.idle")); err != nil {
		m.t.Fatal(err)
	}
	if !group.Yield(true) || share() == ordinary["cpu.weight"]+ordinary["cpu.shares"] {
		m.t.Errorf("without idle groups the share is %s", share())
	}
	if !group.Yield(false) {
		m.t.Error("the group yields for ever")
	}
	m.expect(folder, ordinary)
	// A group that ends has an ordinary share until it is removed.
	if !group.Share(10) || !group.Yield(true) {
		m.t.Error("no group can yield")
	}
	group.End()
	m.expect(folder, ordinary)
	if !group.Yield(true) || !group.Share(10) {
		m.t.Error("a group that ends reports that groups have no shares")
	}
	m.expect(folder, ordinary)
}

func TestNoControlGroups(t *testing.T) {
	for _, mounts := range []string{"", "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "garbage\n"} {
		if _, err := find("2:cpu:/\n0::/\n", mounts); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%q: %v", mounts, err)
		}
	}
}

// checkInUse checks that a limit below what a process uses is refused, and that the limits
// stay as they were.
func checkInUse(t *testing.T, group *Group) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "read go; text=$(head -c 10000000 /dev/zero | tr '\\0' a); echo ready; read end")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(cmd.Start(), group.Add(cmd.Process.Pid)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	limits := func() (all []string) {
		for _, parent := range group.of.version.parents() {
			for _, name := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max"} {
				all = append(all, read(filepath.Join(parent, group.name, name)))
			}
		}
		return all
	}
	was := limits()
	if err := group.Limit(Limits{Memory: 4 << 20, CPUs: 1, Tasks: 20}); !errors.Is(err, ErrInUse) {
		t.Errorf("a limit below what is used: %v", err)
	}
	if now := limits(); !slices.Equal(now, was) {
		t.Errorf("the limits are %v, and were %v", now, was)
	}
	_ = in.Close()
	_ = cmd.Wait() // read finds the end of its input, which is no success
}

// The limits hold for real processes.
func TestKernel(t *testing.T) {
	groups, err := Open(t.TempDir())
	if err != nil {
		t.Skipf("this machine has no control groups for this user: %v", err)
	}
	group, err := groups.New("a", Limits{Memory: 64 << 20, CPUs: 1, Tasks: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
		closed(t, groups)
	})
	// The shell waits until it is in the group.
	run := func(script string) error {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-c", "read go; "+script)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(cmd.Start(), group.Add(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
		_, _ = in.Write([]byte("\n"))
		return cmd.Wait()
	}
	if err := run("true"); err != nil {
		t.Errorf("a process within the limits: %v", err)
	}
	checkInUse(t, group)
	if got := group.Counts(); got.OOMKills != 0 || got.Refused != 0 {
		t.Errorf("%+v before a limit was reached", got)
	}
	if err := run("head -c 200000000 /dev/zero | tail"); group.Counts().OOMKills == 0 {
		t.Errorf("200 MB of memory: %v, %+v", err, group.Counts())
	}
	_ = run("for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 20 & done")
	deadline := time.After(time.Minute)
	for ids := group.Processes(); len(ids) > 0; ids = group.Processes() {
		for _, id := range ids {
			_ = syscall.Kill(id, syscall.SIGKILL) // it may have ended
		}
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatalf("processes that do not end: %v", ids)
		}
	}
	if group.Counts().Refused == 0 {
		t.Errorf("25 processes: %+v", group.Counts())
	}
	if !groups.HasCPU() || !group.Share(10) {
		t.Error("no shares of processors")
	}
	for _, on := range []bool{true, false} { // the kernel accepts no share while a group is idle
		if !group.Yield(on) || !group.Share(20) || !group.Share(100) {
			t.Errorf("yield: %v", on)
		}
	}
	if err := group.Limit(Limits{}); err != nil {
		t.Error(err)
	}
	if err := run("head -c 200000000 /dev/zero | tail -c 1 >/dev/null"); err != nil {
		t.Errorf("without limits: %v", err)
	}
	if slices.Contains(strings.Fields(read("/proc/self/cgroup")), group.name) {
		t.Error("the test is in the group itself")
	}
	if err := Supported(); err != nil {
		t.Error(err)
	}
}
