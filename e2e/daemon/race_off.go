//go:build !race

package daemon

// raceFlag builds the daemon without the race detector, as the test itself is built.
const raceFlag = "-race=false"
