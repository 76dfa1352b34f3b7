package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a process of this machine, as /proc/PID/stat describes it.
type process struct {
	pid, parent int
	ticks       int64 // of processor time, in user and kernel
}

// tree is a process and all its descendants.
type tree []process

// ownTree is the tree of this program.
func ownTree() tree { return below(os.Getpid(), true) }

// below returns the tree of a process, with or without the process itself.
func below(root int, itself bool) tree {
	children := map[int][]process{}
	var found tree
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range entries {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		p, err := parseStat(raw)
		if err != nil {
			continue
		}
		if p.pid == root && itself {
			found = append(found, p)
		}
		children[p.parent] = append(children[p.parent], p)
	}
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			found = append(found, p)
			next = append(next, p.pid)
		}
	}
	return found
}

// parseStat reads a line of /proc/PID/stat (proc(5)). The second field, a name in
// brackets, may contain any characters.
func parseStat(raw []byte) (process, error) {
	end := bytes.LastIndexByte(raw, ')')
	if end < 0 {
		return process{}, fmt.Errorf("not a line of /proc/PID/stat: %q", raw)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(raw), " ", 2)[0])
	if err != nil {
		return process{}, err
	}
	fields := strings.Fields(string(raw[end+1:])) // from the third field
	if len(fields) < 13 {
		return process{}, fmt.Errorf("not a line of /proc/PID/stat: %q", raw)
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, err
	}
	p := process{pid: pid, parent: parent}
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return process{}, err
		}
		p.ticks += n
	}
	return p, nil
}

func (t tree) ticks() (sum int64) {
	for _, p := range t {
		sum += p.ticks
	}
	return sum
}

// pss returns the memory of the tree's processes, in bytes. Shared memory is divided
// among the processes that share it.
func (t tree) pss() (sum int64) {
	for _, p := range t {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
		if err != nil {
			continue // it has ended
		}
		sum += kilobytes(string(raw), "Pss:") << 10
	}
	return sum
}

// mains returns the process IDs of the tree's Chromes, without their child processes.
func (t tree) mains() (pids []int) {
	for _, p := range t {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if err == nil && bytes.Contains(raw, []byte("--remote-debugging-pipe")) && !bytes.Contains(raw, []byte("--type=")) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// kilobytes returns the number after a name in a file of /proc; 0 if the name is
// missing.
func kilobytes(file, name string) int64 {
	for line := range strings.Lines(file) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes only numbers here
			return n
		}
	}
	return 0
}
