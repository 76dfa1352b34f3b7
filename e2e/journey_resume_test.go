package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// resumedAs is the answer to a resume.
type resumedAs struct {
	Status    string
	SessionID string `json:"session_id"`
	CDP       string `json:"cdp_url"`
}

// runsOf returns the status and cause of each run of a session.
func runsOf(t *testing.T, d *daemon.Daemon, id string) (runs []string) {
	t.Helper()
	var list struct {
		Runs []struct{ Status, Cause string }
	}
	d.Must(t, http.StatusOK, http.MethodGet, at(id, "/runs"), nil).Into(t, &list)
	for _, r := range list.Runs {
		runs = append(runs, r.Status+" "+r.Cause)
	}
	return runs
}

// TestResumeAfterKill: a session with automatic checkpoints logs in, and the daemon is
// killed while a page loads. The same session is resumed, logged in, with its tabs. Its
// engine is the shell; TestStory does it with full Chrome.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{"session_id": "worker", "engine": browser.EngineShell, "auto_save": true, "timezone": "Asia/Tokyo"})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/check?tab=front")
	w.eval(page, `document.cookie = "session_token=yes; max-age=100000"`)
	daemon.Eventually(t, grace, "a checkpoint has the login", func() bool {
		var saved struct {
			AutoSave struct {
				ID string `json:"last_snapshot_id"`
			} `json:"auto_save"`
		}
		d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, ""), nil).Into(t, &saved)
		if saved.AutoSave.ID == "" {
			return false
		}
		var snapshot struct {
			Logins []struct{ Cookie string }
		}
		d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+saved.AutoSave.ID, nil).Into(t, &snapshot)
		return len(snapshot.Logins) > 0
	})
	w.post(page, "Page.reload", obj{})
	d.Kill(t)
	d.Restart(t)

	var a resumedAs
	d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/resume"), nil).Into(t, &a)
	if a.Status != "resumed" || a.SessionID != s.ID || a.CDP == "" || a.CDP == s.CDP {
		t.Fatalf("%+v", a)
	}
	w = dial(t, a.CDP)
	page = w.attach(w.tab(site.URL + "/check?tab=front"))
	if pages := w.pages(); len(pages) != 1 {
		t.Fatalf("the tabs are %q", pages)
	}
	if is := w.eval(page, `document.cookie + " " + Intl.DateTimeFormat().resolvedOptions().timeZone`); !strings.Contains(is, "session_token=yes") || !strings.HasSuffix(is, "Asia/Tokyo") {
		t.Errorf("the page has %q", is)
	}
	w.close()
	if runs := runsOf(t, d, s.ID); len(runs) != 2 || runs[0] != "failed the daemon was killed" || runs[1] != "running " {
		t.Errorf("runs: %q", runs)
	}
	d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/resume"), nil).Into(t, &a)
	if a.Status != "already_running" {
		t.Errorf("%+v", a)
	}
	finish(t, d, s.ID, toFiles)
	nothingLeft(t, d)
}

// TestRestartAfterCrash: Chrome is killed, and the session continues automatically,
// logged in, with its tab and cdp_url.
func TestRestartAfterCrash(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{"restart": "on_crash", "auto_save": true})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/check?tab=front")
	w.eval(page, `document.cookie = "session_token=yes; max-age=100000"`)
	// Chrome writes cookies to disk after 512 changes, and its tabs within 2.5 s.
	w.eval(page, `for (let i = 0; i < 600; i++) document.cookie = "churn=" + i + "; max-age=100000"`)
	daemon.Eventually(t, grace, "the login in Chrome's cookies", func() bool { return inProfiles(t, d, "Cookies*", "session_token") })
	daemon.Eventually(t, grace, "the tab's address in Chrome's session files", func() bool { return inSessionFiles(t, d, site.URL+"/check?tab=front") })
	if p, err := os.FindProcess(mains(d)[0]); err != nil || p.Kill() != nil {
		t.Fatal("no Chrome runs that could be killed")
	}
	if code := w.ended(); code != 1011 {
		t.Errorf("the client's connection closed with %d", code)
	}
	w = dial(t, s.CDP) // the same address, at once: the connection waits until Chrome has started
	page, _ = w.page()
	if now := look(t, d, s.ID); now.CDP != s.CDP || now.Status != "running" || !now.Restarted {
		t.Errorf("%+v", now)
	}
	w.until(page, `location.href.endsWith("/check?tab=front")`)
	if is := w.eval(page, `document.cookie + " " + location.href`); !strings.Contains(is, "session_token=yes") || !strings.HasSuffix(is, site.URL+"/check?tab=front") {
		t.Errorf("the page has %q", is)
	}
	w.close()
	if runs := runsOf(t, d, s.ID); len(runs) != 2 || runs[0] != "failed Chrome crashed" || runs[1] != "running " {
		t.Errorf("runs: %q", runs)
	}
	finish(t, d, s.ID, throwAway)
	nothingLeft(t, d)
}
