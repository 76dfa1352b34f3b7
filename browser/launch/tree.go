package launch

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ticksPerSecond is the unit of CPU times in /proc: USER_HZ, which is 100 on
// every Linux platform that Chrome runs on.
const ticksPerSecond = 100

// proc is one process, as read from /proc/PID/stat (proc_pid_stat(5)).
type proc struct {
	pid, ppid int
	state     byte
	cpu       time.Duration // user and system time, reaped children included
	start     uint64        // ticks since boot; with pid it identifies a process for good
}

// dead reports whether the process has ended and only waits to be reaped.
func (p proc) dead() bool { return p.state == 'Z' || p.state == 'X' }

// hasEnded reports whether the process has ended since it was listed. Its PID may have been
// reused.
func (p proc) hasEnded() bool {
	_, ok := p.now()
	return !ok
}

// runs reports whether the process has neither stopped nor ended.
func (p proc) runs() bool {
	now, ok := p.now()
	return ok && now.state != 'T'
}

// now reads the process again; ok is false if it has ended.
func (p proc) now() (now proc, ok bool) {
	line, err := readProc(procPath(p.pid, "stat"))
	if err != nil {
		return proc{}, false
	}
	now, err = parseStat(p.pid, string(line))
	return now, err == nil && now.start == p.start && !now.dead()
}

// parseStat parses the line of a stat file. The name in it may contain blanks and
// parentheses, so fields are counted from the last closing parenthesis.
func parseStat(pid int, line string) (proc, error) {
	end := strings.LastIndexByte(line, ')')
	fields := strings.Fields(line[end+1:])
	if end < 0 || len(fields) < 20 {
		return proc{}, errors.New("malformed stat line")
	}
	p := proc{pid: pid, state: fields[0][0]}
	p.ppid, _ = strconv.Atoi(fields[1])
	for _, f := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, _ := strconv.ParseInt(f, 10, 64)
		p.cpu += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	p.start, _ = strconv.ParseUint(fields[19], 10, 64)
	return p, nil
}

// processes returns every process of the machine. It skips processes that end while it
// reads.
func processes() []proc {
	var all []proc
	for _, pid := range pids() {
		line, err := readProc(procPath(pid, "stat"))
		if err != nil {
			continue
		}
		if p, err := parseStat(pid, string(line)); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// descendants returns the processes below root, parents before their children
// and without root itself.
func descendants(root int) []proc {
	children := map[int][]proc{}
	for _, p := range processes() {
		children[p.ppid] = append(children[p.ppid], p)
	}
	tree := append([]proc(nil), children[root]...)
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i].pid]...)
	}
	return tree
}

// killDescendants sends SIGKILL to every process below root. It repeats until a listing
// contains only processes that were signalled. After that none of them can fork any more.
func killDescendants(root int) {
	sent := map[proc]bool{}
	for fresh := true; fresh; {
		fresh = false
		for _, p := range descendants(root) {
			id := proc{pid: p.pid, start: p.start}
			if p.dead() || sent[id] {
				continue
			}
			sent[id], fresh = true, true
			// Fails only when the process has just ended.
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// stopped reports whether every thread of the process has stopped. A thread in a system
// call finishes that first.
func stopped(pid int) bool {
	for _, thread := range numbers(procPath(pid, "task")) {
		line, err := readProc(procPath(pid, "task/"+strconv.Itoa(thread)+"/stat"))
		if err != nil {
			continue // the thread has ended
		}
		if t, err := parseStat(thread, string(line)); err != nil || (t.state != 'T' && !t.dead()) {
			return false
		}
	}
	return true
}

// pids returns the IDs of every process of the machine.
func pids() []int { return numbers("/proc") }

// numbers returns the entries of a folder of /proc whose names are numbers.
func numbers(path string) []int {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close() // only read from
	var ids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

// commandLine returns the arguments of a process, separated by NULs, or by blanks if
// Chrome has rewritten them. It is empty for a zombie.
func commandLine(pid int) []byte {
	line, err := readProc(procPath(pid, "cmdline"))
	if err != nil {
		return nil
	}
	return line
}

// statusFields returns the words after a key of /proc/PID/status, such as "Uid" or
// "Seccomp". It returns none if the process has ended.
func statusFields(pid int, key string) []string {
	status, err := readProc(procPath(pid, "status"))
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(key+":")); ok {
			return strings.Fields(string(rest))
		}
	}
	return nil
}

// uidOf returns the real UID of a process, or -1 if it has ended.
func uidOf(pid int) int {
	fields := statusFields(pid, "Uid")
	if len(fields) == 0 {
		return -1
	}
	uid, err := strconv.Atoi(fields[0])
	if err != nil {
		return -1
	}
	return uid
}

func procPath(pid int, file string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + file
}

// readProc reads a file of /proc. Lists of processes read hundreds. os.ReadFile makes ten system
// calls for each, of which most prepare for a wait that files of /proc never need.
func readProc(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // only read from
	content := make([]byte, 0, 2048)
	for {
		n, err := unix.Read(fd, content[len(content):cap(content)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			return content, nil
		default:
			content = content[:len(content)+n]
			content = slices.Grow(content, 1)
		}
	}
}
