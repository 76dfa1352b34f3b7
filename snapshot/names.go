package snapshot

import (
	"errors"
	"io/fs"
	"strings"
)

const (
	// The longest names that a Linux file system takes, in bytes.
	maxName    = 4096
	maxElement = 255
	// MaxDepth is how many elements a name of a foreign archive may have; Chrome's
	// profiles have at most 10 (Chrome 156, by a listing of one with every kind of
	// storage). What the daemon saved itself comes back whatever it has: its names are
	// bounded in sum.
	MaxDepth = 32
)

// errTooDeep is what is wrong with a name of more than [MaxDepth] elements.
var errTooDeep = irregular("its archive holds a name with more than 32 elements")

// errUnclean is what is wrong with an archive that holds a name which checkName refuses.
var errUnclean = irregular("its archive holds a name that is not a clean relative path")

// checkName reports whether an archive may hold the name: relative, clean,
// slash-separated UTF-8 without "." or ".." elements and control characters.
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
