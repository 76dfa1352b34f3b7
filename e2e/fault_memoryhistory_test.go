package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
)

// The files of a memory snapshot restore the back/forward list of a tab that navigated just
// before the save.
func TestMemoryFilesHaveHistory(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	site := serveTitle(t)
	s := begin(t, d, obj{})
	w := dial(t, s.CDP)
	page, _ := w.page()
	for _, path := range []string{"/1", "/2", "/3"} {
		w.open(page, site.URL+path)
	}
	w.close()
	snap := finish(t, d, s.ID, "save_snapshot_mode=memory").Snapshot.ID
	d.Kill(t)
	d.Restart(t)
	again := begin(t, d, obj{"restore_from_environment_id": snap})
	r := verified(t, d, again.ID)
	if r.Path == restore.PathParked || r.Verification != restore.VerificationOK || len(r.Warnings) > 0 {
		t.Errorf("%s, %s, %q", r.Path, r.Verification, r.Warnings)
	}
	w = dial(t, again.CDP)
	var list struct{ Entries []struct{ URL string } }
	w.call(w.attach(w.tab("/3")), "Page.getNavigationHistory", nil, &list)
	var got []string
	for _, e := range list.Entries {
		got = append(got, strings.TrimPrefix(e.URL, site.URL))
	}
	if !slices.Equal(got[max(0, len(got)-3):], []string{"/1", "/2", "/3"}) {
		t.Errorf("the tab's list is %q", got)
	}
}
