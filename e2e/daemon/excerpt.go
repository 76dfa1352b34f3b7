package daemon

import (
	"fmt"
	"regexp"
	"strings"
)

// shown is how many of the last lines about nothing amiss an excerpt has.
const shown = 40

var (
	usual    = regexp.MustCompile(`^time=\S+ level=(DEBUG|INFO) `)
	answered = regexp.MustCompile(` msg=request .*\bstatus=[123]\d\d\b`)
)

// excerpt is what of a daemon's log tells why a test failed, so that the test's
// own lines are not lost in it: all that warns, or is no line of the log (a data
// race, a panic, stacks), and the end of the rest, without requests that went
// well. It says how many lines it leaves out.
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
	var told []string
	for i, line := range lines {
		if kept[i] {
			told = append(told, line)
		}
	}
	if n := len(lines) - len(told); n > 0 {
		told = append([]string{fmt.Sprintf("(without %d lines about nothing amiss)", n)}, told...)
	}
	return strings.Join(told, "\n")
}
