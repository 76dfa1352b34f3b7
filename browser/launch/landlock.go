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

// minLandlockABI is the oldest version of Landlock that Chrome can run with. Version 1
// forbids every rename between folders. Linux 5.19 has version 2.
const minLandlockABI = 2

// Sets of access rights. None of them lets Chrome create device files.
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

// grant is a path, and what Chrome may do with it and with everything below. A symbolic
// link stands for its target.
type grant struct {
	Path   string
	Access landlock.AccessFSSet
}

// LandlockABI returns the version of Landlock that the kernel supports, or 0 if Landlock
// is missing or disabled.
func LandlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return abi
}

// checkLandlock returns a SandboxFailed fault if the kernel's Landlock is missing or too
// old.
func checkLandlock(abi int) error {
	const op = "launch.landlock"
	switch {
	case abi == 0:
		return fault.New(fault.SandboxFailed, op, "this kernel has no Landlock, which keeps the machine's files from Chrome: "+
			"use Linux 5.19 or newer, with landlock in the list of its boot parameter lsm= and allowed by the container's seccomp profile; "+
			"or start with --no-landlock, but then pages can read every file that Chrome's user can read")
	case abi < minLandlockABI:
		return fault.New(fault.SandboxFailed, op, "this kernel's Landlock is too old (ABI %d; at least %d is needed, which Linux 5.19 has), "+
			"and Stasis needs Landlock to keep the machine's files from Chrome: use a newer kernel; "+
			"or start with --no-landlock, but then pages can read every file that Chrome's user can read", abi, minLandlockABI)
	}
	return nil
}

// confine restricts this process, and every process that it starts from now on, to the
// granted files. The restriction is permanent. If the kernel supports it, they also
// cannot reach signals and abstract sockets of processes outside. Granted paths that do
// not exist are ignored. confine then tries to open each of the denied paths, which must
// exist, and fails unless each is refused.
func confine(grants []grant, denied []string) error {
	if !enforceLandlock {
		return nil
	}
	if abi := LandlockABI(); abi < minLandlockABI {
		return fmt.Errorf("landlock: the kernel's ABI is %d, at least %d is needed", abi, minLandlockABI)
	}
	rules := make([]landlock.Rule, 0, len(grants))
	for _, g := range grants {
		rules = append(rules, landlock.PathAccess(g.Access, g.Path).IgnoreIfMissing())
	}
	// Landlock does not restrict the network: pages may connect to any address.
	config := landlock.Config{HandledAccessFS: landlock.V6.HandledAccessFS, Scoped: landlock.V6.Scoped}
	if err := config.BestEffort().Restrict(rules...); err != nil {
		return err
	}
	for _, path := range denied {
		file, err := os.Open(path)
		if err == nil {
			return errors.Join(fmt.Errorf("landlock: %s can be opened, but must be refused", path), file.Close())
		}
		if !errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("landlock: opening a denied path failed with an unexpected error: %w", err)
		}
	}
	return nil
}
