package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/cgroup"
)

// groupValues returns the values of a file in the folders of a Chrome's control groups, for
// version 1 and 2.
func groupValues(t *testing.T, name string, files ...string) (values []string) {
	t.Helper()
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || !strings.HasSuffix(path, "/"+name) {
			return nil // a folder may have been removed meanwhile
		}
		for _, file := range files {
			if raw, err := os.ReadFile(filepath.Join(path, file)); err == nil {
				values = append(values, strings.TrimSpace(string(raw)))
			}
		}
		return nil
	})
	return values
}

// A busy Chrome and one in the background have a small share, one that yields is idle for the
// scheduler, and each reason ends for itself. The control group knows the CPU time.
func TestShares(t *testing.T) {
	l, p := limited(t)
	if _, processors := l.Limits(); !processors {
		t.Fatal("the control groups have no processors")
	}
	newClient(t, p).version()
	name := groupName(t, p)
	share := func() string { return strings.Join(groupValues(t, name, "cpu.shares", "cpu.weight"), "") }
	idle := func() string { return strings.Join(groupValues(t, name, "cpu.idle"), "") }
	ordinary := share()
	p.Busy(true)
	small := share()
	p.Background(true)
	p.Busy(false)
	if now := share(); small == ordinary || now != small {
		t.Errorf("shares: %s, busy %s, then in the background %s", ordinary, small, now)
	}
	p.Yield(true)
	if idle() != "1" {
		t.Errorf("a Chrome that yields: idle is %q", idle())
	}
	p.Background(false)
	p.Yield(false)
	if now := share(); now != ordinary || idle() != "0" {
		t.Errorf("the share at the end is %s, idle %q", now, idle())
	}
	before, known := p.UsedCPU()
	if !known || before == 0 {
		t.Errorf("a Chrome has used %s, %v", before, known)
	}
	if other := p.CPUTime(); before > other || other-before > other/2 {
		t.Errorf("its group has used %s, its tree %s", before, other)
	}
	if err := p.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	p.Yield(true) // of a Chrome that has ended
	p.Busy(true)
}

// Without control groups nobody measures Chromes.
func TestNoShares(t *testing.T) {
	p := &Process{}
	p.Busy(true)
	p.Yield(true)
	if _, known := p.UsedCPU(); known {
		t.Error("the CPU time is known")
	}
	var none *cgroup.Group
	if none.Yield(true) || none.Share(1) || none.Processes() != nil {
		t.Error("a Chrome without a group has a share")
	}
}
