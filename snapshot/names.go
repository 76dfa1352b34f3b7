package snapshot

import (
	"errors"
	"io/fs"
	"strings"
)

// The longest names that a Linux file system takes, in bytes.
const (
	maxName    = 4096
	maxElement = 255
)

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
