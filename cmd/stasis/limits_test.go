//go:build linux

package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Without the controller of processors, only required limits keep the daemon from its start.
func TestLimitsWithoutProcessors(t *testing.T) {
	for _, test := range []struct {
		flags         limitFlags
		has           bool
		fails, warned bool
	}{
		{limitFlags{SessionLimits: limitsRequired, SessionCPUs: 1}, true, false, false},
		{limitFlags{SessionLimits: limitsRequired, SessionCPUs: 1}, false, true, false},
		{limitFlags{SessionLimits: limitsRequired}, false, false, false},
		{limitFlags{SessionLimits: "auto", SessionCPUs: 1}, false, false, true},
		{limitFlags{SessionLimits: "auto"}, false, false, false},
	} {
		var out bytes.Buffer
		err := test.flags.checkProcessors(test.has, slog.New(slog.NewTextHandler(&out, nil)))
		if fault.Is(err, fault.Config) != test.fails || strings.Contains(out.String(), "not their processors") != test.warned {
			t.Errorf("%+v, %t: %v, %q", test.flags, test.has, err, out.String())
		}
	}
}
