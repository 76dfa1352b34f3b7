package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/apps/probe"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

const (
	checked = `document.title === "checked"`
	first   = `JSON.stringify(window.__first)`
	kinds   = `JSON.stringify(window.__state)`
)

// fillProbe stores the value "one" in every storage of the site, and of a frame of
// another origin. It leaves three tabs: behind, the page that checks everything and a
// page that is logged in; in front, a tab with its own sessionStorage and window.name.
// It returns what the check read.
func fillProbe(t testing.TB, site *probe.Site, cdpURL string) map[string]any {
	t.Helper()
	got := drive(t, puppeteer, cdpURL,
		visit(site.URL+"/login"), fill("#user", demosite.User), fill("#password", demosite.Password), click("#submit"),
		await(`document.title === "me: demo"`),
		openTab(site.URL+"/set?v=one&frame=1"), await(`document.title === "set"`),
		visit(site.URL+"/check?frame=1"), await(checked), evaluate(kinds),
		openTab(site.URL+"/check?tab=front"), await(checked),
		evaluate(`sessionStorage.setItem("probe", "two"); window.name = "two"`),
	)
	var before map[string]any
	unmarshalText(t, got[9], &before)
	frame, _ := before["frame"].(map[string]any)
	delete(before, "frame")
	if diff := cmp.Diff(whole(), before); diff != "" {
		t.Fatalf("the site did not store everything before the save (-want +got):\n%s", diff)
	}
	before["frame"] = frame
	return before
}

// whole is a __state in which every kind has survived.
func whole() map[string]any {
	all := map[string]any{}
	for _, kind := range demosite.Kinds() {
		all[kind] = "one"
	}
	return all
}

// unmarshalText decodes the JSON in a string that a page returned.
func unmarshalText(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text(t, raw)), v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}

// TestEverythingComesBack: everything that the site stored, in every tab and in a frame
// of another site, is there before the first script. One environment is restored from a
// standby, from the files of a memory snapshot whose Chrome is gone, and from a filesystem
// snapshot, the last two into a spare. Other tests restore everything without a spare.
func TestEverythingComesBack(t *testing.T) {
	t.Parallel()
	dir := daemon.DataDir(t)
	d := daemon.Start(t, daemon.Options{Dir: dir, NoSpares: true, Standby: 1})
	site := apps.StartProbe(t)
	s := create(t, d, body{"user_id": "ada"})
	before := fillProbe(t, site, s.CDP)
	save(t, d, s.ID, "filesystem", "save_as_default=true")
	s = everythingStandsBy(t, d, site, before)
	for _, mode := range []string{"memory", "filesystem"} {
		snap := save(t, d, s.ID, mode)
		if want := map[string]string{"filesystem": "clean", "memory": "live"}[mode]; snap.Datadir != want {
			t.Errorf("%s: the snapshot's datadir is %q, want %q", mode, snap.Datadir, want)
		}
		if mode == "memory" {
			d.Stop(t)
			d = daemon.Start(t, daemon.Options{Dir: dir})
		}
		sparesReady(t, d, 1)
		since := site.Log.Len()
		s = create(t, d, body{"restore_from_session_id": s.ID})
		if s.Restored.Path != restore.PathWarm {
			t.Errorf("%s: the restore path was %s: %s", mode, s.Restored.Path, s.Restored.FallbackReason)
		}
		checkTabs(t, site, s, before)
		checkRequests(t, site, since)
		checkReport(t, d, site, s)
	}
	end(t, d, s.ID, "")
}

// frontTab returns the URL of the tab in front of a session: Chrome's list of pages begins
// with it. A tab has no address before its first document has committed.
func frontTab(t *testing.T, cdpURL string) string {
	t.Helper()
	list := strings.Replace(strings.Replace(cdpURL, "ws://", "http://", 1), "/cdp?", "/json/list?", 1)
	var pages []struct{ URL string }
	daemon.Eventually(t, stepDeadline, "the tab in front has an address", func() bool {
		answer, err := http.Get(list) //nolint:noctx // the test's deadline bounds it
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }() // only read from
		pages = nil
		if err := json.NewDecoder(answer.Body).Decode(&pages); err != nil || len(pages) == 0 {
			t.Fatalf("%s: %s, %v", list, answer.Status, err)
		}
		return pages[0].URL != "" && pages[0].URL != "about:blank"
	})
	return pages[0].URL
}

// checkTabs checks with Puppeteer what every tab shows after a restore.
func checkTabs(t *testing.T, site *probe.Site, r created, before map[string]any) {
	t.Helper()
	checkTabsBy(t, puppeteer, site, r, before)
}

// checkTabsBy checks with a client what every tab shows after a restore.
func checkTabsBy(t *testing.T, client string, site *probe.Site, r created, before map[string]any) {
	t.Helper()
	if front := frontTab(t, r.CDP); front != site.URL+"/check?tab=front" {
		t.Errorf("the tab in front is at %s", front)
	}
	got := drive(t, client, r.CDP,
		toTab("/check?tab=front"), await(checked), evaluate(first), evaluate(`document.visibilityState`),
		toTab("/check?frame=1"), await(checked), evaluate(first), evaluate(kinds),
		toTab("/me"), await(`document.title === "me: demo"`), step{"do": "pages"},
		evaluate(`fetch("/me").then((r) => String(r.status))`),
	)
	var tabs []struct{ URL string }
	if err := json.Unmarshal(got[10], &tabs); err != nil {
		t.Fatal(err)
	}
	urls := []string{}
	for _, tab := range tabs {
		urls = append(urls, strings.TrimPrefix(tab.URL, site.URL))
	}
	slices.Sort(urls)
	if diff := cmp.Diff([]string{"/check?frame=1", "/check?tab=front", "/me"}, urls); diff != "" {
		t.Errorf("tabs (-saved +restored):\n%s", diff)
	}
	if v := text(t, got[3]); v != "visible" {
		t.Errorf("while a client is connected, a tab is %s", v)
	}
	type sight struct {
		Cookie  string `json:"cookie"`
		Local   string `json:"local_storage"`
		Session string `json:"session_storage"`
		Name    string `json:"window_name"`
	}
	for i, want := range map[int]sight{
		2: {Local: "one", Session: "two", Name: "two"},
		6: {Local: "one", Session: "one", Name: "one"},
	} {
		var saw sight
		unmarshalText(t, got[i], &saw)
		if !strings.Contains(saw.Cookie, "session=one") || !strings.Contains(saw.Cookie, "persistent=one") {
			t.Errorf("the first script saw the cookies %q", saw.Cookie)
		}
		saw.Cookie = ""
		if diff := cmp.Diff(want, saw); diff != "" {
			t.Errorf("what the first script saw (-want +got):\n%s", diff)
		}
	}
	var is map[string]any
	unmarshalText(t, got[7], &is)
	if diff := cmp.Diff(before, is); diff != "" {
		t.Errorf("kinds (-saved +restored):\n%s", diff)
	}
	if status := text(t, got[len(got)-1]); status != "200" {
		t.Errorf("the account's page answers %s", status)
	}
}

// checkRequests compares the site's requests with those of the tabs themselves: the
// restore made none.
func checkRequests(t *testing.T, site *probe.Site, since int) {
	t.Helper()
	documents := map[string]int{}
	for _, r := range site.Log.Since(since) {
		switch {
		case r.Method == http.MethodGet && (r.Path == "/check" || r.Path == "/me"):
			documents["http://"+r.Host+r.Path]++
		case r.Path == "/kinds.js", r.Path == "/worker.js", r.Path == "/favicon.ico":
		default:
			t.Errorf("the site received %s %s", r.Method, r.Path)
		}
	}
	want := map[string]int{site.URL + "/check": 2, site.Other + "/check": 1, site.URL + "/me": 2} // one fetch per tab
	if diff := cmp.Diff(want, documents); diff != "" {
		t.Errorf("requested documents (-want +got):\n%s", diff)
	}
}

// checkReport compares the counts of the restore report with what a client reads.
func checkReport(t *testing.T, d *daemon.Daemon, site *probe.Site, r created) {
	t.Helper()
	daemon.Eventually(t, stepDeadline, "the restore is verified", func() bool {
		return see(t, d, r.ID).Restored.Verification != restore.VerificationPending
	})
	var report restore.Report
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+r.ID+"/restore-report", nil).Into(t, &report)
	for _, warning := range report.Warnings {
		t.Errorf("warning: %s", warning)
	}
	if mismatch := report.Verification == restore.VerificationMismatch; mismatch != (len(report.Warnings) > 0) {
		t.Errorf("verification %s, warnings %q", report.Verification, report.Warnings)
	}
	got := drive(t, chromeDP, r.CDP,
		toTab("/check?tab=front"), evaluate(`String(localStorage.length)`), evaluate(`String(sessionStorage.length)`),
		toTab("/check?frame=1"), evaluate(`String(sessionStorage.length)`),
		toTab("/me"), evaluate(`String(sessionStorage.length)`),
	)
	w := dial(t, r.CDP)
	var jar struct{ Cookies []struct{ Domain string } }
	w.call("", "Storage.getCookies", nil, &jar)
	w.close()
	type key struct{ name, origin string }
	want := map[key]int{
		{state.ComponentTabs, ""}:                       3,
		{state.ComponentWindowName, ""}:                 2,
		{state.ComponentLocalStorage, site.URL + "/"}:   number(t, got[1]),
		{state.ComponentSessionStorage, site.URL + "/"}: number(t, got[2]) + number(t, got[4]) + number(t, got[6]),
	}
	for _, c := range jar.Cookies {
		want[key{state.ComponentCookies, strings.TrimPrefix(c.Domain, ".")}]++
	}
	is := map[key]int{}
	for _, c := range report.Components {
		k := key{c.Name, c.Origin}
		if _, asked := want[k]; asked || c.Name == state.ComponentCookies {
			is[k] += c.Restored
		}
		if strings.Contains(c.Origin, "^") && c.Dropped > 0 {
			t.Errorf("not everything of a third-party frame was restored: %+v", c)
		}
		if c.Saved != c.Restored+c.Dropped+c.Expired || c.Dropped > 0 && c.Reason.Code == "" {
			t.Errorf("the report does not add up: %+v", c)
		}
	}
	if diff := cmp.Diff(want, is, cmp.AllowUnexported(key{})); diff != "" {
		t.Errorf("counts (-read by a client +reported):\n%s\n%+v", diff, report.Components)
	}
}

func number(t testing.TB, raw json.RawMessage) int {
	t.Helper()
	var n int
	unmarshalText(t, raw, &n)
	return n
}

// Without its tabs, an environment has one blank tab, makes no request to the site, and
// has everything that does not live in a tab.
func restoreWithoutTabs(t *testing.T, d *daemon.Daemon) {
	site := apps.StartProbe(t)
	s := create(t, d, body{})
	fillProbe(t, site, s.CDP)
	for _, mode := range []string{"memory", "filesystem"} {
		s = func() created {
			save(t, d, s.ID, mode)
			since := site.Log.Len()
			r := create(t, d, body{"restore_from_session_id": s.ID, "restore_tabs": false})
			if tabs := tabsOf(t, d, r.ID); !slices.Equal(tabs, []string{"about:blank"}) {
				t.Errorf("%s: tabs: %q", mode, tabs)
			}
			if asked := site.Log.Since(since); len(asked) > 0 {
				t.Errorf("%s: the site received: %+v", mode, asked)
			}
			var is map[string]any
			unmarshalText(t, drive(t, chromeDP, r.CDP, visit(site.URL+"/check"), await(checked), evaluate(kinds))[2], &is)
			want := whole()
			want["session_storage"], want["window_name"] = nil, nil // they live in a tab
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("%s: kinds (-want +got):\n%s", mode, diff)
			}
			for _, c := range r.Restored.Components {
				if c.Name == state.ComponentTabs && (c.Restored != 0 || c.Dropped != c.Saved || c.Saved == 0 || c.Reason.Code == "") {
					t.Errorf("%s: the report on tabs: %+v", mode, c)
				}
			}
			return r
		}()
	}
}
