package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// What one session's Chrome needs and what is left to the machine, in bytes.
// A logged-in page in full Chrome measured 340–361 MB of proportional memory.
const (
	sessionMemory  = 400 << 20
	reservedMemory = 1 << 30
)

// sessionsIn is how many sessions fit into so much memory: at least one.
func sessionsIn(bytes int64) int {
	return int(max((bytes-reservedMemory)/sessionMemory, 1))
}

// maxSpares is how many spares are kept where no flag says so: starting one keeps
// a core or two busy for a moment.
const maxSpares = 2

// sparesFor is how many spares a machine with so many cores keeps, when so many
// sessions fit into its memory: one for every two cores, and none where a single
// session takes all there is.
func sparesFor(cores, sessions int) int {
	if sessions < 2 {
		return 0
	}
	return min(max(cores/2, 1), maxSpares)
}

// memoryLimit is how much memory may be taken, in bytes: 0 where nobody said so,
// less where there is no limit.
type memoryLimit int64

// UnmarshalText reads a flag's value.
func (l *memoryLimit) UnmarshalText(text []byte) error {
	if string(text) == "none" {
		*l = -1
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 {
		return errors.New("must be a number of bytes, 1 or more, or none")
	}
	*l = memoryLimit(n)
	return nil
}

// of is the limit of so many parked Chromes as the pool has it, 0 for none: where
// nobody said so, what that many are given of the machine.
func (l memoryLimit) of(parked int) int64 {
	switch {
	case l < 0:
		return 0
	case l == 0:
		return int64(parked) * sessionMemory
	default:
		return int64(l)
	}
}

// roomForChrome reports whether the machine can give one more Chrome its memory.
func roomForChrome() bool {
	memory, err := availableMemory()
	return err == nil && memory >= reservedMemory+sessionMemory
}

// availableMemory is what the machine has to give now, or what the container's
// limit leaves where that is less.
func availableMemory() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	available, err := memAvailable(string(raw))
	if err != nil {
		return 0, err
	}
	if left, limited := limitLeft("/sys/fs/cgroup"); limited {
		available = min(available, left)
	}
	return available, nil
}

// limitLeft is what the limit of a control group (cgroup v2) leaves: all but what
// its processes hold, of which the files' pages that nobody has used lately can be
// given back. It is false where there is no limit, as at the root.
func limitLeft(group string) (left int64, limited bool) {
	read := func(file string) string {
		raw, _ := os.ReadFile(filepath.Join(group, file)) // what is not there says nothing
		return strings.TrimSpace(string(raw))
	}
	left, err := strconv.ParseInt(read("memory.max"), 10, 64) // "max" for none
	if err != nil {
		return 0, false
	}
	held, _ := strconv.ParseInt(read("memory.current"), 10, 64) // 0 where the kernel does not tell
	for line := range strings.Lines(read("memory.stat")) {
		if size, is := strings.CutPrefix(line, "inactive_file "); is {
			idle, _ := strconv.ParseInt(strings.TrimSpace(size), 10, 64) // as above
			held -= min(held, idle)
		}
	}
	return max(left-held, 0), true
}

// memAvailable finds MemAvailable in /proc/meminfo (proc(5)), in bytes.
func memAvailable(meminfo string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no MemAvailable")
}
