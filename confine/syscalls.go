package confine

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are the system calls that reading a file never needs and that a hostile program
// would use: sockets, links and devices, other processes, and the parts of the kernel in
// which most holes were found.
func refused() []uint32 {
	return append(refusedHere(),
		unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
		unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG,
		unix.SYS_SYMLINKAT, unix.SYS_LINKAT, unix.SYS_MKNODAT, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
		unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN, unix.SYS_MEMFD_CREATE, unix.SYS_INOTIFY_INIT1, unix.SYS_FANOTIFY_INIT,
		unix.SYS_PERSONALITY, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_SEND_SIGNAL)
}

// Offsets in struct seccomp_data.
const (
	numberAt = 0
	archAt   = 4
	firstAt  = 16 // the lower half of the first argument
)

// filter returns a program that refuses calls of refused with EPERM, and every call of
// another architecture's numbers. Threads may be started, processes may not. Only the
// process pid gets signals.
func filter(native, pid uint32) []unix.SockFilter {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		anyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
		refuse = unix.SECCOMP_RET_ERRNO
		// x32 is the first number of amd64's 32-bit calls; arm64 has no number as high.
		x32 = 0x40000000
	)
	program := []unix.SockFilter{
		{Code: load, K: archAt},
		{Code: equal, K: native, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: numberAt},
		{Code: least, K: x32, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		// The C library, which a binary with the race detector has, then uses clone.
		{Code: equal, K: unix.SYS_CLONE3, Jf: 1},
		{Code: ret, K: refuse | uint32(unix.ENOSYS)},
	}
	for _, number := range refused() {
		program = append(program, unix.SockFilter{Code: equal, K: number, Jf: 1}, unix.SockFilter{Code: ret, K: refuse | uint32(unix.EPERM)})
	}
	for _, number := range []uint32{unix.SYS_KILL, unix.SYS_TGKILL} {
		program = append(program,
			unix.SockFilter{Code: equal, K: number, Jf: 4},
			unix.SockFilter{Code: load, K: firstAt},
			unix.SockFilter{Code: equal, K: pid, Jt: 1},
			unix.SockFilter{Code: ret, K: refuse | uint32(unix.EPERM)},
			unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
	}
	return append(program,
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 3},
		unix.SockFilter{Code: load, K: firstAt},
		unix.SockFilter{Code: anyBit, K: unix.CLONE_THREAD, Jt: 1},
		unix.SockFilter{Code: ret, K: refuse | uint32(unix.EPERM)},
		unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
}

// filterSyscalls puts the filter on all threads of this process, for good.
func filterSyscalls() error {
	native, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return unix.ENOSYS
	}
	// The kernel passes this on to the other threads with the filter.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	all := filter(native, uint32(os.Getpid()))                        //nolint:gosec // it is positive
	program := unix.SockFprog{Len: uint16(len(all)), Filter: &all[0]} //nolint:gosec // some hundred instructions
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
