package e2e

import (
	"net/http"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// The disk is full when automatic checkpoints are due. The failure is reported, and the
// last good checkpoint stays and is what a resume restores. Once there is space again,
// the next checkpoint succeeds. The session uses the shell, which starts faster.
func TestFaultDiskFullAutosave(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{Dir: smallStore(t), NoSpares: true, Args: shellUnlessLong()})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{"engine": "shell", "auto_save": obj{"interval_seconds": 86400, "on": []string{"navigation"}}})
	type autosaved struct {
		ID       string `json:"last_snapshot_id"`
		Failures int
		Error    string `json:"last_error"`
	}
	var now autosaved
	until := func(what string, is func() bool) {
		t.Helper()
		daemon.Eventually(t, grace, what, func() bool {
			var info struct {
				AutoSave autosaved `json:"auto_save"`
			}
			d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, ""), nil).Into(t, &info)
			now = info.AutoSave
			return is()
		})
	}
	goes := func(cdp, path string) {
		t.Helper()
		w := dial(t, cdp)
		page, _ := w.page()
		w.open(page, site.URL+path)
		w.close()
	}
	goes(s.CDP, "/?kept=yes")
	until("a checkpoint", func() bool { return now.ID != "" })
	good := now.ID
	release := fillDisk(t, d.Dir, 64<<10)
	goes(s.CDP, "/?lost=yes")
	until("a failure", func() bool { return now.Failures > 0 })
	if now.ID != good || now.Error == "" {
		t.Errorf("the last one is %+v, was %s", now, good)
	}
	failed := func() (n int) {
		var runs struct {
			Runs []struct {
				ID string `json:"run_id"`
			}
		}
		d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/runs"), nil).Into(t, &runs)
		for _, run := range runs.Runs {
			events := d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/runs/"+run.ID+"/events"), nil)
			var page struct {
				Events []struct {
					Type string
					Data struct{ Code string }
				}
			}
			events.Into(t, &page)
			for _, e := range page.Events {
				if e.Type == "save_failed" && e.Data.Code == "store_full" {
					n++
				}
			}
		}
		return n
	}
	if failed() == 0 {
		t.Error("no event reports the failure")
	}

	finish(t, d, s.ID, throwAway)
	var back resumedAs
	d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/resume"), nil).Into(t, &back)
	if info := look(t, d, s.ID); info.Restored == nil || info.Restored.SnapshotID != good {
		t.Errorf("resumed from %+v, want %s", info.Restored, good)
	}
	goes(back.CDP, "/?again=yes")
	until("a failure after the resume", func() bool { return now.Failures > 0 })
	release()
	until("a checkpoint once there is room", func() bool { return now.ID != "" && now.ID != good })
	if now.Failures != 0 || now.Error != "" {
		t.Errorf("the failure is still reported: %+v", now)
	}
	finish(t, d, s.ID, throwAway)
	nothingLeft(t, d)
}
