package save

import (
	"github.com/stasisd/stasis/fault"
)

// The problems of a copy. A default does not move to a checkpoint with one: its Chrome
// still runs, and can be saved again.
const (
	DamagedCopy = "damaged_copy" // something in it is damaged on disk
	UnreadCopy  = "unread_copy"  // there was no time to look
)

// ProblemError is the error that an automatic checkpoint with a problem counts as; nil for
// none. [UnreadCopy] is an error only if move is set: a default was to move to it.
func ProblemError(problem string, move bool) error {
	const op = "session.autosave"
	switch {
	case problem == DamagedCopy:
		return fault.New(fault.SaveFailed, op, "something in the copy is damaged on disk; it is kept, its warnings tell what, and the earlier ones stay")
	case problem == UnreadCopy && move:
		return fault.New(fault.SaveFailed, op, "there was no time to read the copy, so the default does not move to it")
	}
	return nil
}
