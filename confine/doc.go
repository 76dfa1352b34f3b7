// Package confine runs this binary again as a child process without rights, which does one
// piece of work on input that nobody trusts. A defect in what parses the input then reaches
// only the child.
//
// A child gets one open file to read and one folder to read and write. Its answer is JSON
// on a pipe, of bounded size. It has
//
//   - a user ID that nothing else has, if the daemon runs as root, and no capabilities;
//   - by Landlock (landlock(7)), no file of the machine but those in its folder, and no TCP;
//   - a new network namespace (network_namespaces(7)), in which there is nothing to connect to;
//   - by a seccomp filter (seccomp(2)), no sockets, no links, no further processes, and no
//     signals to others;
//   - limits of memory, processor time, open files and the size of files (setrlimit(2)), and
//     of the time that it runs;
//   - a folder of bounded size: the daemon looks at it and kills the child.
//
// It ends with the daemon. Not every system allows all of these; [Confiner.Layers] says
// which hold.
//
// A main function calls [Main] before anything else if its first argument is [Arg].
package confine

// Arg is the first argument that makes the binary run as a child.
const Arg = "confined"

// childName is the child's process name. It differs from the daemon's, so that killing the
// daemon by name does not fail its imports first.
const childName = "upload-reader"

// The child's inherited file descriptors besides standard input, which carries the order and
// stays open as long as the daemon wants the answer, and standard output, for the answer.
const fdInput = 3

// Layers says which of the restrictions of a child hold.
type Layers struct {
	Landlock int  // the ABI version that is enforced; 0: none
	Network  bool // a new network namespace
	Syscalls bool // the seccomp filter
}

// Missing returns the restrictions that do not hold, in words.
func (l Layers) Missing() []string {
	var missing []string
	if l.Landlock == 0 {
		missing = append(missing, "Landlock")
	}
	if !l.Network {
		missing = append(missing, "network namespace")
	}
	if !l.Syscalls {
		missing = append(missing, "seccomp")
	}
	return missing
}

// covers reports whether the layers are at least those of other.
func (l Layers) covers(other Layers) bool {
	return l.Landlock >= other.Landlock && (l.Network || !other.Network) && (l.Syscalls || !other.Syscalls)
}
