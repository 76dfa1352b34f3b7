package launch

import "fmt"

// interfaceHeight is what full Chrome's own interface takes of a window's
// height, in CSS pixels (measured with 156). The shell has none: its window is
// that much lower, so that pages have the same size in both.
const interfaceHeight = 87

// shellFlags are the flags that every headless shell is started with. It has no
// interface, no services and no extensions, so it needs few. What it has in
// common with [chromeFlags] is there for the same reasons.
func shellFlags() []string {
	return []string{
		"--remote-debugging-pipe",
		preCommitInput,
		fmt.Sprintf("--screen-info={%dx%d}", screenWidth, screenHeight),
		"--disable-background-networking",
		"--disable-quic",
		"--disable-breakpad",
		"--disable-field-trial-config",
		"--password-store=basic",
		// As full Chrome without a display server, it draws no 3D: a site sees the
		// same browser, and no process is spent on it.
		"--disable-gpu",
		// Its records of bounce tracking would begin with the first blank tab, before
		// the environment's are there; those are full Chrome's and stay as they are.
		"--disable-features=DIPS",
	}
}
