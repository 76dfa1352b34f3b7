package report

import "fmt"

// MaxWarnings bounds how many warnings a report has, beside the one that counts
// the others.
const MaxWarnings = 100

// BoundedWarnings are the first [MaxWarnings] of some warnings, and one that counts
// the others. It also returns how many those are. unlisted is how many more were
// counted before.
func BoundedWarnings(all []string, unlisted int) ([]string, int) {
	if len(all) <= MaxWarnings+1 && unlisted == 0 {
		return all, 0
	}
	listed := min(len(all), MaxWarnings)
	unlisted += len(all) - listed
	return append(all[:listed:listed], fmt.Sprintf("and %d more warnings", unlisted)), unlisted
}
