package confine

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The limits of every child. Real uploads need a fraction: a state file of 64 MiB, the
// largest that is read, takes some 600 MiB.
const (
	// MaxMemory is the most memory of a child, in bytes: what it writes to, without its
	// binary.
	MaxMemory = 1 << 30
	// MaxTime is how long a child may run.
	MaxTime = 15 * time.Minute
	// maxCPU is the most processor time of a child, summed over its threads.
	maxCPU = 10 * time.Minute
	// maxOpenFiles is the most open files of a child. It reads a few at once.
	maxOpenFiles = 256
)

// limits are the limits that the caller chooses.
type limits struct {
	FileSize int64 // of each file that the child writes, in bytes
}

// maxThreads is the most threads of a child's user. Go makes one for each core and for each
// system call that blocks.
func maxThreads() uint64 { return uint64(64 + 4*runtime.NumCPU()) }

// set sets the limits of this process, or keeps lower ones that it has. threads says whether
// its user is its own: the kernel counts the threads of a user.
func (l limits) set(threads bool) error {
	all := map[int]uint64{
		unix.RLIMIT_CPU: uint64(maxCPU.Seconds()), unix.RLIMIT_FSIZE: uint64(max(l.FileSize, 0)),
		unix.RLIMIT_NOFILE: maxOpenFiles, unix.RLIMIT_CORE: 0,
	}
	if limitMemory {
		// Not RLIMIT_AS: Go reserves far more addresses than it uses.
		all[unix.RLIMIT_DATA] = MaxMemory
	}
	if threads {
		all[unix.RLIMIT_NPROC] = maxThreads()
	}
	for resource, most := range all {
		var has unix.Rlimit
		if err := unix.Getrlimit(resource, &has); err != nil {
			return err
		}
		most = min(most, has.Max)
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}
