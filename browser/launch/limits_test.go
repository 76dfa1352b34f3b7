package launch

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/browser/cgroup"
)

// groupsOf returns the control groups of a process, without the controllers' names; none if it
// has ended.
func groupsOf(t *testing.T, pid int) (paths []string) {
	t.Helper()
	raw, err := os.ReadFile(procPath(pid, "cgroup"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		paths = append(paths, strings.SplitN(strings.TrimSpace(line), ":", 3)[2])
	}
	return paths
}

func inGroup(t *testing.T, pid int, name string) bool {
	t.Helper()
	return slices.ContainsFunc(groupsOf(t, pid), func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), "stasis-") && strings.HasSuffix(path, "-"+name)
	})
}

// limited starts a Chrome with limits on a launcher with control groups.
func limited(t *testing.T) (*Launcher, *Process) {
	t.Helper()
	root := shortTemp(t) + "/run"
	groups, err := cgroup.Open(root)
	if err != nil {
		t.Skipf("this machine has no control groups for this user: %v", err)
	}
	t.Cleanup(func() { // after the Chromes have ended
		if err := groups.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := New(Config{Root: root, UIDs: testUIDs, Groups: groups, Files: 2048})
	if err != nil {
		t.Fatal(err)
	}
	return l, start(t, l, Options{URL: "about:blank", Limits: cgroup.Limits{Memory: 2 << 30, Tasks: 1000}})
}

// All processes of a Chrome are in its control group, frozen or not, but not what ends them.
func TestControlGroup(t *testing.T) {
	l, p := limited(t)
	newClient(t, p).version()
	await(t, "a renderer", func() bool { return hasRenderer(p) })
	warden := p.warden.Process.Pid
	await(t, "the warden leaves the group", func() bool { return !inGroup(t, warden, "s") })
	if was, now := groupsOf(t, os.Getpid()), groupsOf(t, warden); !slices.Equal(was, now) {
		t.Errorf("the warden is in %q, the daemon in %q", now, was)
	}
	for range 2 {
		for _, pid := range p.Processes() {
			if !inGroup(t, pid, "s") && len(commandLine(pid)) > 0 { // it has not ended meanwhile
				t.Errorf("process %d is not in the group: %s", pid, commandLine(pid))
			}
		}
		if err := p.Freeze(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if c := p.Counts(); c != (cgroup.Counts{}) {
		t.Errorf("a frozen Chrome: %+v", c)
	}
	if err := p.Thaw(within(t)); err != nil {
		t.Fatal(err)
	}
	newClient(t, p).version()
	if err := p.Limit(cgroup.Limits{Memory: 1 << 20}); err == nil {
		t.Error("a limit of memory below what Chrome uses")
	}
	if err := p.Limit(cgroup.Limits{Memory: 1 << 30, Tasks: 900}); err != nil {
		t.Error(err)
	}
	p.Background(true)
	p.Background(false)
	name := groupName(t, p)
	if err := p.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	if left := groupFolders(name); len(left) > 0 {
		t.Errorf("groups of a Chrome that has ended: %q", left)
	}
	// Another Chrome of the directory gets a group of the same name.
	again := start(t, l, Options{Dir: p.dir, URL: "about:blank"})
	if !inGroup(t, again.PID(), "s") {
		t.Error("the second Chrome is not in the group")
	}
	if err := again.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
}

// groupName returns the name of a Chrome's control group.
func groupName(t *testing.T, p *Process) string {
	t.Helper()
	for _, path := range groupsOf(t, p.PID()) {
		if name := filepath.Base(path); strings.HasPrefix(name, "stasis-") {
			return name
		}
	}
	t.Fatal("Chrome has no control group")
	return ""
}

// groupFolders returns the folders of the groups of a name.
func groupFolders(name string) (found []string) {
	for _, at := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids"} {
		_ = filepath.WalkDir(at, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() && strings.HasSuffix(path, "/"+name) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

// Each process of Chrome may have only so many files open.
func TestProcessLimits(t *testing.T) {
	_, p := limited(t)
	newClient(t, p).version()
	for _, pid := range p.Processes() {
		raw, err := os.ReadFile(procPath(pid, "limits"))
		if err != nil || len(raw) == 0 {
			continue // it has ended
		}
		_, line, _ := bytes.Cut(raw, []byte("Max open files"))
		if fields := strings.Fields(string(line)); fields[1] != "2048" {
			t.Errorf("process %d may have %s files open", pid, fields[1])
		}
	}
}
