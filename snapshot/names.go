package snapshot

import (
	"errors"
	"io/fs"
	"strings"
)

const (
	// The longest names that a Linux file system accepts, in bytes.
	maxName    = 4096
	maxElement = 255
	// MaxDepth is the number of elements that a name in a foreign archive may have.
	// Chrome's profiles have at most 10 (Chrome 156, by a listing of one with every kind of
	// storage). Snapshots of the daemon itself are not limited by it; only the total size
	// of their names is.
	MaxDepth = 32
)

// errTooDeep reports a name with more than [MaxDepth] elements.
var errTooDeep = irregular("its archive holds a name with more than 32 elements")

// errUnclean reports a name that checkName refuses.
var errUnclean = irregular("its archive holds a name that is not a clean relative path")

// checkName checks that an archive may hold the name: relative, clean, slash-separated
// UTF-8 without "." or ".." elements and control characters.
func checkName(name string) error {
	if name == "." || !fs.ValidPath(name) {
		return errors.New("the name is not a clean relative path")
	}
	if len(name) > maxName {
		return errors.New("the name is too long")
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > maxElement {
			return errors.New("the name is too long")
		}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("the name holds a control character")
	}
	return nil
}
