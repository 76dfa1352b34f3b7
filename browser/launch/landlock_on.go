//go:build !stasis_no_landlock

package launch

// enforceLandlock is false only in binaries that test the other walls alone.
const enforceLandlock = true
