package daemon

import (
	"fmt"
	"regexp"
	"strings"
)

// shown is how many of the last ordinary lines an excerpt has.
const shown = 40

var (
	usual    = regexp.MustCompile(`^time=\S+ level=(DEBUG|INFO) `)
	answered = regexp.MustCompile(` msg=request .*\bstatus=[123]\d\d\b`)
)

// excerpt returns the lines of a daemon's log that explain a failed test, so that the
// test's own lines are not lost in it. It keeps all warnings, and all lines that are not
// log lines (data races, panics, stacks). Of the rest it keeps the last lines, without
// successful requests. It says how many lines it leaves out.
func excerpt(log string) string {
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	kept := make([]bool, len(lines))
	last := 0
	for i := len(lines) - 1; i >= 0; i-- {
		switch {
		case !usual.MatchString(lines[i]):
			kept[i] = true
		case last < shown && !answered.MatchString(lines[i]):
			kept[i] = true
			last++
		}
	}
	var excerpted []string
	for i, line := range lines {
		if kept[i] {
			excerpted = append(excerpted, line)
		}
	}
	if n := len(lines) - len(excerpted); n > 0 {
		excerpted = append([]string{fmt.Sprintf("(without %d lines of ordinary operation)", n)}, excerpted...)
	}
	return strings.Join(excerpted, "\n")
}
