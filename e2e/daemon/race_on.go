//go:build race

package daemon

// raceFlag builds the daemon with the race detector, as the test itself is built.
const raceFlag = "-race"
