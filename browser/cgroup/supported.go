package cgroup

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Supported returns nil if [Open] will probably work in the group of this process. It
// changes nothing.
func Supported() error {
	v, err := current()
	if err != nil {
		return err
	}
	for _, parent := range v.parents() {
		if err := unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK); err != nil {
			return unsupported(err, "control groups cannot be made here: "+remedy)
		}
	}
	return nil
}

// current returns the version that this process has.
func current() (version, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, unsupported(err, "this system has no control groups")
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, unsupported(err, "the control groups of this system cannot be found")
	}
	return find(string(own), string(mounts))
}
