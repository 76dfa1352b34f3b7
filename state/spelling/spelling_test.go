package spelling

import (
	"strings"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	known := []string{"cookies", "origins", "restore_from_environment_id", "restore_from_session_id", "start_url"}
	for name, want := range map[string]string{
		"cokies":                   "did you mean cookies?",
		"Cookies":                  "did you mean cookies?",
		"startUrl":                 "did you mean start_url?",
		"orgin":                    "did you mean origins?",
		"restore_from":             "did you mean restore_from_environment_id or restore_from_session_id?",
		"cook":                     "did you mean cookies?",
		"viewport":                 "",
		"":                         "",
		strings.Repeat("x", 1<<20): "",
	} {
		if got := DidYouMean(name, known); got != want {
			t.Errorf("%.20q: %q, want %q", name, got, want)
		}
	}
}
