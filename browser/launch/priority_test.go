package launch

import (
	"os"
	"strings"
	"testing"

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
		for _, pid := range p.Processes() {
			if p.dir.UID == os.Geteuid() {
				continue // only root can raise it again
			}
			if nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err == nil && nice != test.nice {
				t.Errorf("process %d has priority %d, not %d", pid, nice, test.nice)
			}
		}
	}
}
