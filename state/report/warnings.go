package report

import "fmt"

// MaxWarnings is the largest number of warnings in a report. One more warning may count
// the rest.
const MaxWarnings = 100

// BoundedWarnings returns the first [MaxWarnings] warnings, and one that counts the
// others. It also returns their number. unlisted is how many were already left out
// before.
func BoundedWarnings(all []string, unlisted int) ([]string, int) {
	if len(all) <= MaxWarnings+1 && unlisted == 0 {
		return all, 0
	}
	listed := min(len(all), MaxWarnings)
	unlisted += len(all) - listed
	return append(all[:listed:listed], fmt.Sprintf("and %d more warnings", unlisted)), unlisted
}
