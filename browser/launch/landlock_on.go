//go:build !stasis_no_landlock

package launch

// enforceLandlock is false only in binaries that test the other protections alone.
const enforceLandlock = true
