//go:build stasis_no_landlock

package launch

// enforceLandlock is off: this binary starts Chrome as if Landlock were in force, but
// applies no rule. The build tag is for tests of the other protections.
const enforceLandlock = false
