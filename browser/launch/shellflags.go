package launch

import "fmt"

// interfaceHeight is the height of full Chrome's own interface in a window, in CSS pixels
// (measured with 156). The shell has no interface. Its window is that much lower, so that
// pages have the same size in both.
const interfaceHeight = 87

// shellFlags returns the flags of every headless shell. It has no interface, no services
// and no extensions, so it needs few flags. The flags that it shares with [chromeFlags]
// have the same reasons.
func shellFlags() []string {
	return append(clientFlags(),
		"--remote-debugging-pipe",
		fmt.Sprintf("--screen-info={%dx%d}", screenWidth, screenHeight),
		"--disable-background-networking",
		"--disable-quic",
		"--disable-breakpad",
		"--disable-field-trial-config",
		"--password-store=basic",
		// No GPU process is needed. 3D is drawn by SwiftShader.
		"--disable-gpu",
		// Its bounce tracking records would start with the first blank tab, before those of
		// the environment are in place. Those are full Chrome's and stay unchanged.
		"--disable-features=DIPS",
	)
}
