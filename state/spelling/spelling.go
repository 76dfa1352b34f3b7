// Package spelling finds the name that somebody meant by a misspelt one.
package spelling

import (
	"fmt"
	"strings"
)

// DidYouMean returns a question with the known name that a misspelt name most likely
// stands for, or else with those that begin with it: "did you mean start_url?". It returns ""
// if no known name is similar.
func DidYouMean(name string, known []string) string {
	name = plain(name)
	nearest, distance := "", 1+len(name)/4 // one wrong letter in four, and one more
	for _, k := range known {
		if d := editDistance(name, plain(k)); d <= distance && (nearest == "" || d < distance) {
			nearest, distance = k, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf("did you mean %s?", nearest)
	}
	var longer []string // somebody left out the end of a name
	for _, k := range known {
		if len(name) >= 4 && strings.HasPrefix(plain(k), name) {
			longer = append(longer, k)
		}
	}
	if len(longer) == 0 {
		return ""
	}
	return fmt.Sprintf("did you mean %s?", strings.Join(longer, " or "))
}

// maxName is how many bytes of a name are compared, because callers choose its length.
const maxName = 80

// plain drops what languages spell differently: saveAsDefault becomes the same as
// save_as_default.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name[:min(len(name), maxName)]))
}

// editDistance returns the least number of bytes to insert, remove or replace to turn a
// into b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // from the bytes of a so far to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
