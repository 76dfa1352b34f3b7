package save

import (
	"github.com/stasisd/stasis/fault"
)

// The problems of a checkpoint's copy. A default does not move to such a checkpoint,
// because Chrome still runs and can be saved again.
const (
	DamagedCopy = "damaged_copy" // damaged data on disk
	UnreadCopy  = "unread_copy"  // there was no time to verify it
)

// ProblemError returns the error that an automatic checkpoint with this problem counts
// as; nil for none. [UnreadCopy] is an error only if move is set: the default was to move
// to the checkpoint.
func ProblemError(problem string, move bool) error {
	const op = "session.autosave"
	switch {
	case problem == DamagedCopy:
		return fault.New(fault.SaveFailed, op, "the checkpoint contains damaged data; it is kept, its warnings name the damage, and earlier checkpoints stay")
	case problem == UnreadCopy && move:
		return fault.New(fault.SaveFailed, op, "the checkpoint could not be verified in time, so the default does not move to it")
	}
	return nil
}
