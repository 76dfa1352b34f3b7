package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/stasisd/stasis/fault"
)

// minLandlockABI is the least version of Landlock that Chrome can run behind:
// version 1 forbids every rename between folders. Linux 5.19 has version 2.
const minLandlockABI = 2

// Sets of access rights. None of them lets Chrome make device files.
const (
	readFile    landlock.AccessFSSet = ll.AccessFSReadFile
	readFolder                       = readFile | ll.AccessFSReadDir
	runFolder                        = readFolder | ll.AccessFSExecute
	writeFile                        = readFile | ll.AccessFSWriteFile | ll.AccessFSTruncate
	shareFolder                      = writeFile | ll.AccessFSMakeReg | ll.AccessFSRemoveFile
	ownFolder                        = shareFolder | readFolder | ll.AccessFSRemoveDir | ll.AccessFSMakeDir | ll.AccessFSMakeSock |
		ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	procFolder = readFolder | ll.AccessFSWriteFile
)

// grant is a path and what Chrome may do with it and all that lies below.
// A link stands for what it leads to.
type grant struct {
	Path   string
	Access landlock.AccessFSSet
}

// LandlockABI returns the version of Landlock that the kernel offers, 0 where it
// has none or does not use it.
func LandlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// checkLandlock returns a SandboxFailed fault where the kernel's Landlock is of
// no use.
func checkLandlock(abi int) error {
	const op = "launch.landlock"
	switch {
	case abi == 0:
		return fault.New(fault.SandboxFailed, op, "this kernel has no Landlock, which keeps the machine's files from Chrome: "+
			"use Linux 5.19 or newer, with landlock in the list of its boot parameter lsm= and allowed by the container's seccomp profile; "+
			"or start with --no-landlock, pages can then read every file that Chrome's user can read")
	case abi < minLandlockABI:
		return fault.New(fault.SandboxFailed, op, "this kernel's Landlock is too old (ABI %d, %d is the least, of Linux 5.19), "+
			"and it keeps the machine's files from Chrome: use a newer kernel; "+
			"or start with --no-landlock, pages can then read every file that Chrome's user can read", abi, minLandlockABI)
	}
	return nil
}

// confine keeps this process, and every process that it starts from now on, from
// all files but those that are granted, for good. On a kernel that can, it also
// keeps them from signals and abstract sockets of processes outside. Paths that do
// not exist are left out. It then tries to open each of the denied paths, which
// exist, and fails unless every one is refused.
func confine(grants []grant, denied []string) error {
	if !enforceLandlock {
		return nil
	}
	if abi := LandlockABI(); abi < minLandlockABI {
		return fmt.Errorf("landlock: the kernel's ABI is %d, %d is the least", abi, minLandlockABI)
	}
	rules := make([]landlock.Rule, 0, len(grants))
	for _, g := range grants {
		rules = append(rules, landlock.PathAccess(g.Access, g.Path).IgnoreIfMissing())
	}
	// The network is not Landlock's to restrict here: pages reach what they like.
	config := landlock.Config{HandledAccessFS: landlock.V6.HandledAccessFS, Scoped: landlock.V6.Scoped}
	if err := config.BestEffort().Restrict(rules...); err != nil {
		return err
	}
	for _, path := range denied {
		file, err := os.Open(path)
		if err == nil {
			return errors.Join(fmt.Errorf("landlock: %s can be opened, and it must not", path), file.Close())
		}
		if !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("landlock: what must be refused failed in another way: %w", err)
		}
	}
	return nil
}
