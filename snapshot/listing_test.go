package snapshot

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// FuzzCheckNames checks that every entry and every implied folder counts once, and that
// names over a limit are refused.
func FuzzCheckNames(f *testing.F) {
	f.Add("Default/Cookies\nDefault/a/b/c", 5, 40)
	f.Add(strings.Repeat("a/", 40)+"f", 100, 1000)
	f.Add("a/b/c/d\na/b/c/e\na/b/x", 7, 100)
	f.Fuzz(func(t *testing.T, text string, entries, bytes int) {
		if entries < 1 || bytes < 1 || len(text) > 1<<16 {
			return // 0 means the default
		}
		all, sum := map[string]bool{}, 0
		var names []string
		for name := range strings.SplitSeq(text, "\n") {
			if checkName(name) != nil {
				continue
			}
			names = append(names, name)
			for at := name; at != "." && !all[at]; at = path.Dir(at) {
				all[at] = true
				sum += len(at)
			}
		}
		err := Limits{Entries: entries, Names: bytes}.CheckNames(slices.Values(names))
		if want := len(all) > entries || sum > bytes; want != (err != nil) {
			t.Errorf("%d names, %d bytes of %d and %d: %v", len(all), sum, entries, bytes, err)
		}
		if err != nil && !fault.Is(err, fault.SaveFailed) {
			t.Error(err)
		}
	})
}
