// Package launch starts the real Chrome and owns its whole process tree.
//
// Chrome speaks CDP over --remote-debugging-pipe (its file descriptors 3 and
// 4); it opens no TCP port, runs with its sandbox on, and sees nothing of the
// daemon's environment. When the daemon is root, every run directory has a
// uid of its own and Chrome runs as that.
//
// # The warden
//
// Between the daemon and each Chrome stands a small process, the warden: the
// daemon's own binary, executed again with "warden" as its first argument
// ([WardenMain]). It is the subreaper of Chrome's tree, so no process of that
// tree can leave it, and it ends only when every one of them is gone. So the
// daemon learns of the end of a tree by waiting for one child. It also holds
// a lifeline to the daemon: when the daemon dies, however it dies, the
// lifeline closes and the warden kills the tree, frozen processes included,
// which do not hear of their parent's death themselves.
//
// The descriptors between them: 3 and 4 are Chrome's pipe, passed on; 5 is the
// lifeline, whose first line is the [order] and whose end or any further byte
// means "kill"; 6 carries one JSON [report] per line back.
package launch
