package launch

import (
	"strconv"
	"strings"
)

// Memory returns the proportional set size of the tree's processes, in bytes
// (smaps_rollup, proc(5)). The kernel walks all their pages for it, which takes tens of
// milliseconds. The tree may be thawed or killed meanwhile.
func (p *Process) Memory() (sum int64) {
	for _, pid := range p.Processes() {
		raw, err := readProc(procPath(pid, "smaps_rollup"))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(raw)) {
			if size, is := strings.CutPrefix(line, "Pss:"); is {
				sum += kilobytes(strings.Fields(size))
			}
		}
	}
	return sum
}

// Largest returns the private memory of the tree's largest process, in bytes: memory that
// no file backs. The kernel knows this without a walk over pages.
func (p *Process) Largest() (most int64) {
	for _, pid := range p.Processes() {
		most = max(most, kilobytes(statusFields(pid, "RssAnon"))+kilobytes(statusFields(pid, "RssShmem")))
	}
	return most
}

// kilobytes parses a size from a file of /proc, such as "12 kB". It returns bytes, or 0
// for none.
func kilobytes(fields []string) int64 {
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64) // the kernel writes numbers
	return n << 10
}
