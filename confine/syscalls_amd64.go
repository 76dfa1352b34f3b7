package confine

import "golang.org/x/sys/unix"

// refusedHere are the older forms of refused calls that only amd64 has.
func refusedHere() []uint32 {
	return []uint32{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_SYMLINK, unix.SYS_LINK, unix.SYS_MKNOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_INOTIFY_INIT}
}
