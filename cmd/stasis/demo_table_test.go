//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/session/restore"
)

// The table says nothing of a verification that has not ended, because the site itself
// finds everything. It says what a verification found.
func TestDemoTableVerification(t *testing.T) {
	for result, want := range map[string]string{restore.VerificationPending: noFigure, restore.VerificationOK: "ok", restore.VerificationMismatch: "mismatch"} {
		var out strings.Builder
		d := demo{out: &out, restored: []restoredState{{column: "memory", user: demosite.User, report: restore.Report{Verification: result}}}}
		d.table()
		if err := d.verdict(); err != nil {
			t.Error(err)
		}
		var row []string
		for line := range strings.Lines(out.String()) {
			if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "verification" {
				row = fields
			}
		}
		if len(row) != 2 || row[1] != want {
			t.Errorf("%s: %q, want %s", result, row, want)
		}
	}
}
