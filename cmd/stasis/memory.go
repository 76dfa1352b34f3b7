//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The memory that one session's Chrome needs, and what is left for the rest of the machine,
// in bytes. A logged-in page in full Chrome used 340–361 MB of proportional memory (PSS).
const (
	sessionMemory  = 400 << 20
	reservedMemory = 1 << 30
)

// sessionsIn returns how many sessions fit into so many bytes of memory: at least one.
func sessionsIn(bytes int64) int {
	return int(max((bytes-reservedMemory)/sessionMemory, 1))
}

// maxSpares is how many spares are kept at most if no flag says so: starting one keeps a
// core or two busy for a moment.
const maxSpares = 2

// sparesFor returns how many spares a machine with so many cores keeps, if so many sessions
// fit into its memory: one for every two cores, and none if only one session fits.
func sparesFor(cores, sessions int) int {
	if sessions < 2 {
		return 0
	}
	return min(max(cores/2, 1), maxSpares)
}

// memoryLimit is how much memory may be used, in bytes: 0 if the flag is not set, negative
// for no limit.
type memoryLimit int64

// UnmarshalText parses a flag's value.
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

// String returns the limit as a flag gives it; "" if the flag is not set.
func (l memoryLimit) String() string {
	switch {
	case l < 0:
		return "none"
	case l == 0:
		return ""
	}
	return strconv.FormatInt(int64(l), 10)
}

// of returns the memory limit of the pool for so many parked Chromes, in bytes; 0 means no
// limit. If the flag is not set, it is sessionMemory for each.
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

// memoryForChrome reports whether the machine has memory for one more Chrome.
func memoryForChrome() bool {
	memory, err := availableMemory()
	return err == nil && memory >= reservedMemory+sessionMemory
}

// availableMemory returns how much memory the machine has available, or what the limit of
// the container or of the systemd unit leaves if that is less.
func availableMemory() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	available, err := memAvailable(string(raw))
	if err != nil {
		return 0, err
	}
	own, _ := os.ReadFile("/proc/self/cgroup") // without it only the root's limit counts
	for _, group := range groups("/sys/fs/cgroup", string(own)) {
		if left, limited := limitLeft(group); limited {
			available = min(available, left)
		}
	}
	return available, nil
}

// totalMemory returns the machine's memory, or the limit of the container or of the systemd unit
// if that is less, in bytes.
func totalMemory() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	total, err := memField(string(raw), "MemTotal:")
	if err != nil {
		return 0, err
	}
	own, _ := os.ReadFile("/proc/self/cgroup") // without it only the root's limit counts
	for _, group := range groups("/sys/fs/cgroup", string(own)) {
		limit, err := os.ReadFile(filepath.Join(group, "memory.max"))
		if n, bad := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64); err == nil && bad == nil { // "max" for none
			total = min(total, n)
		}
	}
	return total, nil
}

// groups returns the folders of a process's control group and of all groups above it, whose
// limits apply too. cgroup is the text of the process's /proc/PID/cgroup (cgroups(7)).
func groups(root, cgroup string) []string {
	all := []string{root}
	for line := range strings.Lines(cgroup) {
		own, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !unified {
			continue
		}
		for path := filepath.Clean("/" + own); path != "/"; path = filepath.Dir(path) {
			all = append(all, filepath.Join(root, path))
		}
	}
	return all
}

// limitLeft returns what the limit of a control group (cgroup v2) leaves: the limit minus
// what its processes use. Pages of the file cache that were not used recently do not count,
// because the kernel can free them. limited is false if there is no limit, as at the root.
func limitLeft(group string) (left int64, limited bool) {
	read := func(file string) string {
		raw, _ := os.ReadFile(filepath.Join(group, file)) // a missing file counts as empty
		return strings.TrimSpace(string(raw))
	}
	left, err := strconv.ParseInt(read("memory.max"), 10, 64) // "max" for none
	if err != nil {
		return 0, false
	}
	held, _ := strconv.ParseInt(read("memory.current"), 10, 64) // 0 if the kernel does not report it
	for line := range strings.Lines(read("memory.stat")) {
		if size, is := strings.CutPrefix(line, "inactive_file "); is {
			idle, _ := strconv.ParseInt(strings.TrimSpace(size), 10, 64) // as above
			held -= min(held, idle)
		}
	}
	return max(left-held, 0), true
}

// memAvailable returns MemAvailable of /proc/meminfo (proc(5)), in bytes.
func memAvailable(meminfo string) (int64, error) { return memField(meminfo, "MemAvailable:") }

// memField returns a value of /proc/meminfo by its name, in bytes.
func memField(meminfo, name string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == name {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no " + strings.TrimSuffix(name, ":"))
}
