package launch

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A tree in the background has a lower claim on the processors, and its ordinary
// one afterwards, at once too: to who is not root the kernel says that it
// is to try again.
func TestBackground(t *testing.T) {
	p := start(t, newLauncher(t, ""), Options{URL: "about:blank"})
	c := newClient(t, p)
	c.version()
	for _, test := range []struct {
		on    bool
		share string
		nice  int // as getpriority(2) itself gives it: 20 less the nice value
	}{{true, "10", 10}, {false, "0", 20}} {
		p.Background(test.on)
		c.version()
		group, err := os.ReadFile(procPath(p.PID(), "autogroup"))
		if err == nil && !strings.HasSuffix(strings.TrimSpace(string(group)), " nice "+test.share) {
			t.Errorf("Chrome is of %s, not nice %s", strings.TrimSpace(string(group)), test.share)
		}
		if p.dir.UID == os.Geteuid() {
			continue // only root can raise it again
		}
		// A process that is being forked meanwhile may keep what its parent had.
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
				t.Fatalf("processes have other priorities than %d: %v", test.nice, wrong)
			}
		}
	}
}
