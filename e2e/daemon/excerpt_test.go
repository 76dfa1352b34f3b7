package daemon

import (
	"fmt"
	"strings"
	"testing"
)

// Warnings and errors are shown whatever their age, ordinary lines only if they are
// recent.
func TestExcerpt(t *testing.T) {
	const at = "time=2026-11-22T08:00:00.000Z level="
	lines := []string{at + `WARN msg="a rescue failed"`, "WARNING: DATA RACE", "goroutine 7 [running]:", at + `INFO msg="the oldest"`}
	for n := range shown {
		lines = append(lines, fmt.Sprint(at, "INFO msg=n", n), at+"INFO msg=request method=GET route=/v1/sessions status=200 duration_ms=1")
	}
	lines = append(lines, at+"ERROR msg=request method=GET route=/v1/sessions status=500 duration_ms=1 code=internal")
	got := strings.Split(excerpt(strings.Join(lines, "\n")+"\n"), "\n")
	if len(got) != 1+3+shown+1 || !strings.Contains(got[0], fmt.Sprintf("without %d lines", 1+shown)) {
		t.Fatalf("%d lines:\n%s", len(got), strings.Join(got, "\n"))
	}
	if got[1] != lines[0] || got[2] != lines[1] || got[3] != lines[2] || !strings.HasSuffix(got[4], "msg=n0") || got[len(got)-1] != lines[len(lines)-1] {
		t.Errorf("not in order:\n%s", strings.Join(got, "\n"))
	}
	if got := excerpt(at + "INFO msg=request method=POST route=/v1/sessions status=409 code=busy"); strings.Contains(got, "without") {
		t.Errorf("the excerpt leaves out a refused request: %s", got)
	}
}
