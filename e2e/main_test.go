// Package e2e drives the real stasis binary, with a real Chrome, through the
// clients that people use, against web applications that nobody here wrote.
//
// Each test runs its own daemons (see e2e/daemon) and leaves nothing
// behind. Every HTTP exchange is held against openapi.yaml.
//
// Tests run beside each other, as many as -parallel says. A test that waits for
// parallel parts of its own does not count meanwhile.
package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// shellUnlessLong returns flags of a daemon of a test whose subject is not the browser: in
// make test its sessions have the shell, which takes less than half the processor time of
// full Chrome. In make test-long they have full Chrome, as most users do.
func shellUnlessLong() []string {
	if storetest.Long() {
		return nil
	}
	return []string{"--engine", browser.EngineShell}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == withoutLandlockArg {
		fmt.Fprintln(os.Stderr, withoutLandlock(os.Args[2:]))
		os.Exit(1)
	}
	code := m.Run()
	daemon.CleanUp()
	os.Exit(code)
}
