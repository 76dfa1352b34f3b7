package profiles

import "errors"

// ErrOutcomeUnknown is in the chain of an error of a write if the catalogue was lost during
// the commit, and could not say in time whether the write was committed. Any other error
// of a write says that nothing of it was.
var ErrOutcomeUnknown = errors.New("whether the catalogue committed the change is unknown")
