package launch

import (
	"errors"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// An old Chrome whose sandbox works is reported as too old, also if its standard error mentions a
// file of the sandbox: Chromium before 156 answers no command lines, and warns about OOM scores.
func TestExplain(t *testing.T) {
	warning := "[7:9:ERROR:content/browser/zygote_host/zygote_host_impl_linux.cc:279] Failed to adjust OOM score of renderer with pid 9: Permission denied (13)"
	for _, test := range []struct {
		err  error
		want fault.Code
	}{
		{errUnanswered, fault.ChromeMissing},
		{errUnconfined, fault.SandboxFailed},
		{errors.New("EOF"), fault.SandboxFailed},
	} {
		p := &Process{exit: ExitState{Stderr: warning}}
		if got := fault.CodeOf(p.explain(t.Context(), test.err)); got != test.want {
			t.Errorf("%v: %s, want %s", test.err, got, test.want)
		}
	}
}
