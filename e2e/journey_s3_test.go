package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// A daemon with its snapshots in a bucket saves, and restores after a restart. Its own
// disk has no snapshot, and the log does not contain the key.
func TestJourneyS3(t *testing.T) {
	t.Parallel()
	server := s3test.Start(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true,
		Args: []string{"--store", server.URL("stasis")},
		Env:  []string{"AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey},
	})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{"engine": browser.EngineShell})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `document.cookie = "login=yes; max-age=100000"; localStorage.setItem("kept", "yes"); 1`)
	saved := finish(t, d, s.ID, toFiles)

	d.Stop(t)
	d.Restart(t)
	back := begin(t, d, obj{"restore_from_environment_id": saved.Snapshot.ID, "engine": browser.EngineShell})
	w = dial(t, back.CDP)
	page = w.attach(w.tab(site.URL + "/"))
	if got := w.eval(page, `document.cookie + localStorage.getItem("kept")`); got != "login=yesyes" {
		t.Errorf("restored: %q", got)
	}
	finish(t, d, back.ID, throwAway)
	d.Must(t, http.StatusOK, http.MethodGet, "/readyz", nil)

	archives, err := os.ReadDir(filepath.Join(server.Dir, s3test.Bucket, "stasis", "archives"))
	if err != nil || len(archives) != 1 {
		t.Errorf("the bucket holds archives %v, %v", archives, err)
	}
	if _, err := os.Stat(filepath.Join(d.Dir, "snapshots")); !os.IsNotExist(err) {
		t.Errorf("the data directory has snapshots too: %v", err)
	}
	if spool := files(t, filepath.Join(d.Dir, "spool")); len(spool) > 0 {
		t.Errorf("temporary files of uploads remain: %q", spool)
	}
	if strings.Contains(d.Log(), s3test.SecretKey) {
		t.Error("the secret key is in the log")
	}
}
