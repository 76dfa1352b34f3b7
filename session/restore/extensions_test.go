package restore

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/state"
)

// If an extension's files in the archive do not match the document, install does not
// restore it and reports the loss.
func TestInstallRefusesOtherFiles(t *testing.T) {
	l, err := launch.New(launch.Config{Binary: "/bin/true", Root: t.TempDir(), UIDs: launch.UIDRange{Base: 320500, Count: 1}})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := l.NewDir("d")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"../../etc", strings.Repeat("a", 32)} {
		list, lost, err := (&Restorer{}).install(t.Context(), dir, []state.Extension{{ID: bad, SHA256: "s"}}, nil)
		if err != nil || len(list) != 0 || len(lost) != 1 || lost[0].Dropped != 1 || lost[0].Reason.Code == "" {
			t.Errorf("%s: %+v %+v %v", bad, list, lost, err)
		}
	}
	if err := dir.Remove(); err != nil {
		t.Error(err)
	}
}
