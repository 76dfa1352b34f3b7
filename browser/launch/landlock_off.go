//go:build stasis_no_landlock

package launch

// enforceLandlock is off: this binary starts as if Landlock held, and applies
// nothing. The build tag is for tests of the other walls.
const enforceLandlock = false
