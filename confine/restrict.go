package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// ownFolder is what a child may do below its folder. It cannot make links, sockets, pipes
// and devices, so the daemon finds only files and folders there.
const ownFolder landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir | ll.AccessFSWriteFile | ll.AccessFSTruncate |
	ll.AccessFSMakeReg | ll.AccessFSMakeDir | ll.AccessFSRemoveFile | ll.AccessFSRemoveDir

// restrict gives up all rights of this process that the order does not need, for good, and
// returns what holds. It fails if something that must work fails, and if something that was
// given up still works.
func restrict(o order) (Layers, error) {
	layers := Layers{Network: o.OwnNetwork}
	if err := closeInherited(); err != nil {
		return layers, fmt.Errorf("closing inherited files: %w", err)
	}
	// The name is for people. If memory is short, the kernel is to end this process first.
	_ = os.WriteFile("/proc/self/comm", []byte(childName), 0)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := o.Limits.set(o.UID != os.Geteuid()); err != nil {
		return layers, fmt.Errorf("setting limits: %w", err)
	}
	if err := become(o.UID); err != nil {
		return layers, fmt.Errorf("becoming user %d: %w", o.UID, err)
	}
	// After become, which clears it. Other processes of the user may not read this one.
	if err := errors.Join(unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)); err != nil {
		return layers, err
	}
	var err error
	if layers.Landlock, err = restrictFiles(o.Folder); err != nil {
		return layers, fmt.Errorf("landlock: %w", err)
	}
	layers.Syscalls = filterSyscalls() == nil
	return layers, verify(layers)
}

// closeInherited closes all files but those that the daemon gave to the child: the daemon may
// have inherited some itself. Files of the Go runtime have no name in the file system.
func closeInherited() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= fdInput {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err == nil && !strings.HasPrefix(to, "anon_inode:") {
			_ = unix.Close(fd) // the folder that was just read is closed already
		}
	}
	return nil
}

// become makes a user and its group those of all threads. Another user than root has no
// capabilities afterwards.
func become(uid int) error {
	if uid == os.Geteuid() {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(uid, uid, uid); err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

// restrictFiles leaves all threads no files but those below the folder, and no TCP. It
// returns the ABI version of Landlock, and 0 if the kernel has none.
func restrictFiles(folder string) (abi int, err error) {
	abi, err = ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return 0, nil //nolint:nilerr // the caller reports that Landlock is missing
	}
	var rules []landlock.Rule
	if folder != "" {
		rules = append(rules, landlock.PathAccess(ownFolder, folder))
	}
	return abi, landlock.V6.BestEffort().Restrict(rules...)
}

// verify tries what the layers must refuse.
func verify(layers Layers) error {
	if layers.Landlock > 0 {
		root, err := os.Open("/")
		if err == nil {
			return errors.Join(errors.New("landlock: / can be opened, but must be refused"), root.Close())
		}
		if !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("landlock: opening / failed with an unexpected error: %w", err)
		}
	}
	if layers.Syscalls {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err == nil {
			return errors.Join(errors.New("seccomp: a socket can be made, but must be refused"), unix.Close(fd))
		}
	}
	return nil
}
