package launch

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A tree in the background has a lower CPU priority, and afterwards its ordinary one.
// Switching back at once also works: an unprivileged process gets EAGAIN from the kernel
// and must retry.
func TestBackground(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	for _, test := range []struct {
		on    bool
		share string
		nice  int // as getpriority(2) returns it: 20 minus the nice value
	}{{true, "10", 10}, {false, "0", 20}} {
		p.Background(test.on)
		c.version()
		group, err := os.ReadFile(procPath(p.PID(), "autogroup"))
		if err == nil && !strings.HasSuffix(strings.TrimSpace(string(group)), " nice "+test.share) {
			t.Errorf("Chrome's session has %s, want nice %s", strings.TrimSpace(string(group)), test.share)
		}
		if p.dir.UID == os.Geteuid() {
			continue // only root can raise it again
		}
		// A process that is forked meanwhile may keep the priority of its parent.
		for deadline := time.Now().Add(10 * time.Second); ; p.Background(test.on) {
			wrong := map[int]int{}
			for _, pid := range p.Processes() {
				if nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err == nil && nice != test.nice {
					wrong[pid] = nice
				}
			}
			if len(wrong) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("processes with a priority other than %d: %v", test.nice, wrong)
			}
		}
	}
}
