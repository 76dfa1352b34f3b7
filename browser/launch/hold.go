package launch

import (
	"bytes"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Chrome opens its SQLite databases with these flags (156, os_unix.c of SQLite). No other open
// has them, so a filter on system calls recognises databases by them.
const databaseOpen = unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC

// LaterDelay is how long the first page of a restore loads undisturbed. Until then these wait:
// the databases that Chrome opens at its start, the gates that no first page needs, and large
// caches.
const LaterDelay = 200 * time.Millisecond

// networkService is in the command line of the process that owns the cookies.
const networkService = "network.mojom.NetworkService"

// hold makes every open of a database wait until the files of an environment are in
// place. It is the listener of a seccomp filter (seccomp_unotify(2)), which Chrome
// inherits for its life: later opens pass at once. The listener must live as long as
// Chrome, because without it each such open would fail.
type hold struct {
	listener int
	later    <-chan time.Time // the opens of Chrome's start pass

	mu       sync.Mutex
	waiting  []notification
	released bool // opens do not wait any more
}

// notification is struct seccomp_notif.
type notification struct {
	id    uint64
	pid   uint32 // of the thread that waits
	flags uint32
	data  struct {
		nr   int32
		arch uint32
		ip   uint64
		args [6]uint64
	}
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// newHold puts the filter on this thread and on every process that it starts. The caller
// has locked the thread.
func newHold() (*hold, error) {
	// Without this only root may add a filter. Chrome's sandbox needs no setuid program.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return nil, unix.ENOSYS
	}
	filter := openFilter(arch)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without SPEC_ALLOW, older kernels slow down every process that has a filter.
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return nil, errno
	}
	h := &hold{listener: int(fd)}
	go h.receive()
	return h, nil
}

// openFilter returns the program that reports openat with the flags of a database to the
// listener and allows all other calls.
func openFilter(native uint32) []unix.SockFilter {
	const (
		load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal     = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		ret       = unix.BPF_RET | unix.BPF_K
		number    = 0
		arch      = 4
		openFlags = 16 + 2*8 // the lower half of the third argument
	)
	return []unix.SockFilter{
		{Code: load, K: arch},
		{Code: equal, K: native, Jf: 5},
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_OPENAT, Jf: 3},
		{Code: load, K: openFlags},
		{Code: equal, K: databaseOpen, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
}

// receive lets each open wait or pass, as long as the warden lives.
func (h *hold) receive() {
	runtime.LockOSThread() // the thread waits in the kernel
	for {
		var n notification
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(h.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
		switch {
		case errno == unix.EINTR || errno == unix.ENOENT: // the process was stopped or has ended
		case errno != 0:
			panic("seccomp listener: " + errno.Error()) // else every later open would wait for ever; Chrome ends with the warden
		default:
			h.add(n)
		}
	}
}

func (h *hold) add(n notification) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released {
		h.pass(n)
		return
	}
	h.waiting = append(h.waiting, n)
}

// release lets all opens pass. Those of the network service pass at once: the first page needs
// cookies. The others that wait already are of Chrome's start, and pass after [LaterDelay].
// Later opens pass at once, because a page may need them.
func (h *hold) release() {
	h.mu.Lock()
	h.released = true
	var later []notification
	for _, n := range h.waiting {
		if ofNetworkService(n) {
			h.pass(n)
		} else {
			later = append(later, n)
		}
	}
	h.waiting = nil
	h.mu.Unlock()
	if h.later == nil {
		h.later = time.After(LaterDelay)
	}
	<-h.later
	for _, n := range later {
		h.pass(n)
	}
}

// pass lets an open continue. An open that was interrupted is gone; Chrome tries again.
func (h *hold) pass(n notification) {
	r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(h.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
		if errno != unix.EINTR { // a signal of the Go runtime came while the kernel waited for its lock
			return
		}
	}
}

func ofNetworkService(n notification) bool {
	return bytes.Contains(commandLine(int(n.pid)), []byte(networkService))
}
