// Package launch starts Chrome and controls its whole process tree.
//
// Chrome speaks CDP over --remote-debugging-pipe (its file descriptors 3 and 4). It opens
// no TCP port, runs with its sandbox on, and gets none of the daemon's environment
// variables. If the daemon runs as root, every run directory has its own UID, and Chrome
// runs as that user.
//
// # The warden
//
// Between the daemon and each Chrome runs a small process, the warden. It is the daemon's
// own binary, executed with "warden" as its first argument ([WardenMain]). The warden is
// the subreaper of Chrome's tree, so no process of that tree can leave it. It exits only
// when all of them have ended. So the daemon detects the end of a tree by waiting for one
// child. The warden also holds a pipe to the daemon, the lifeline. When the daemon dies,
// for whatever reason, the lifeline closes and the warden kills the tree. That includes
// frozen processes, which cannot react to their parent's death themselves.
//
// The descriptors between them: 3 and 4 are Chrome's pipe, passed on to Chrome. 5 is the
// lifeline: its first line is the [order], and its end or any further byte means "kill".
// With a [Deadline], it also has lines that move it.
// 6 carries one JSON [report] per line to the daemon.
package launch
