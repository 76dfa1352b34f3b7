package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/e2e/apps/weblog"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// rotor is a site that changes its token whenever it can: a session cookie, a persistent
// cookie, and the same in localStorage. It answers under two origins of different sites.
type rotor struct {
	url, other string
	log        *weblog.Log
	token      atomic.Int64 // the newest token
}

// firstLook is the first script of each page. It reads everything before any other
// script, and a framed page sends that to its parent.
const firstLook = `<!doctype html><script>
const one = (name) => (document.cookie.match(new RegExp("\\b" + name + "=(\\w+)")) || [])[1] || "";
window.__seen = [one("session"), one("kept"), localStorage.token || "", sessionStorage.token || "", window.name].join("|");
if (parent !== window) parent.postMessage(window.__seen, "*");
</script>`

// rotorPages are its pages, by path.
var rotorPages = map[string]string{
	// order shows a frame of the other origin.
	"/order": firstLook + `<script>
addEventListener("message", (e) => { window.__frame = e.data; });
</script><iframe src="%s/inner"></iframe>`,
	"/inner": firstLook + `<script>
addEventListener("message", (e) => {
	localStorage.token = sessionStorage.token = e.data;
	parent.postMessage("set", "*");
});
</script>`,
	// leaving changes the token when the page is left, if requested.
	"/leaving": firstLook + `<script>
addEventListener("pagehide", () => {
	if (!window.armed) return;
	localStorage.token = "left";
	sessionStorage.token = "left";
	navigator.sendBeacon("/rotate");
	fetch("/rotate", {method: "POST", keepalive: true});
});
</script>`,
	// turning changes the token with every document and ten more times.
	"/turning": firstLook + `<script>
(async () => {
	for (let i = 0; i < 10; i++) {
		const token = await (await fetch("/rotate", {method: "POST"})).text();
		localStorage.token = token;
		sessionStorage.token = token;
		localStorage["token_" + token] = "issued";
		for (const key of Object.keys(localStorage)) {
			if (key.startsWith("token_") && key !== "token_" + token) delete localStorage[key];
		}
		await new Promise((turned) => setTimeout(turned, 30));
	}
	document.title = "turned";
})();
</script>`,
}

func startRotor(t testing.TB) *rotor {
	t.Helper()
	r := &rotor{log: weblog.New(time.Now)}
	server := httptest.NewServer(r.log.Wrap(http.HandlerFunc(r.answer)))
	t.Cleanup(server.Close)
	r.url, r.other = server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	return r
}

func (r *rotor) answer(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	page, ok := rotorPages[req.URL.Path]
	switch {
	case req.URL.Path == "/rotate":
		_, _ = fmt.Fprint(w, r.rotate(w)) // fails if the browser has disconnected
	case !ok:
		http.NotFound(w, req)
	default:
		if req.URL.Path == "/turning" {
			r.rotate(w)
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, strings.Replace(page, "%s", r.other, 1))
	}
}

// rotate issues a new token.
func (r *rotor) rotate(w http.ResponseWriter) int64 {
	token := r.token.Add(1)
	w.Header().Add("Set-Cookie", fmt.Sprintf("session=%d; Path=/", token))
	w.Header().Add("Set-Cookie", fmt.Sprintf("kept=%d; Path=/; Max-Age=3600", token))
	return token
}

// keepOne stores "one" in every storage that firstLook reads.
const keepOne = `document.cookie = "session=one; path=/"; document.cookie = "kept=one; path=/; max-age=3600";
	localStorage.token = sessionStorage.token = "one"; window.name = "one"`

// savings are the two ways to restore an environment from files: as Chrome closed them,
// and as they were copied from a frozen Chrome that is gone.
var savings = []struct {
	mode    string
	datadir state.Datadir
}{{"filesystem", state.DatadirClean}, {"memory", state.DatadirLive}}

// TestStateBeforeTheFirstScript: the first script of a restored page reads its cookies,
// both storages and window.name, also in a frame of another site. The site is asked only
// for the tabs' own documents.
func TestStateBeforeTheFirstScript(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	sites, ids := map[string]*rotor{}, map[string]string{}
	for _, s := range savings {
		site := startRotor(t)
		one := create(t, d, body{})
		drive(t, puppeteer, one.CDP, visit(site.url+"/order"), await(`window.__frame === "||||"`),
			evaluate(keepOne), evaluate(`frames[0].postMessage("inner", "*")`), await(`window.__frame === "set"`))
		save(t, d, one.ID, s.mode)
		sites[s.mode], ids[s.mode] = site, one.ID
	}
	restart(t, d)
	for _, s := range savings {
		t.Run(s.mode, func(t *testing.T) {
			site := sites[s.mode]
			since := site.log.Len()
			two := create(t, d, body{"restore_from_session_id": ids[s.mode]})
			if two.Restored.Datadir != s.datadir {
				t.Fatalf("the restored datadir is %s", two.Restored.Datadir)
			}
			got := drive(t, puppeteer, two.CDP, toTab("/order"), await(`window.__frame`), evaluate(`window.__seen`))
			if saw := text(t, got[2]); saw != "one|one|one|one|one" {
				t.Errorf("the page's first script saw %s", saw)
			}
			if saw := text(t, got[1]); saw != "||inner|inner|" && !explained(two.Restored.Components, "^") {
				t.Errorf("the frame's first script saw %s, and the report gives no reason", saw)
			}
			asked := []string{}
			for _, r := range site.log.Since(since) {
				if r.Path != "/favicon.ico" {
					asked = append(asked, r.Method+" http://"+r.Host+r.Path)
				}
			}
			slices.Sort(asked)
			want := []string{"GET " + site.url + "/order", "GET " + site.other + "/inner"}
			if diff := cmp.Diff(want, asked); diff != "" {
				t.Errorf("requests to the site (-want +got):\n%s", diff)
			}
			end(t, d, two.ID, "")
		})
	}
}

// explained reports whether a report gives a reason for storage with such a key.
func explained(lines []state.Component, key string) bool {
	return slices.ContainsFunc(lines, func(c state.Component) bool {
		return strings.Contains(c.Origin, key) && c.Reason.Code != ""
	})
}

// TestRotationWhileChromeCloses: what a site writes when its page is left, and what it
// sets with its last response, is restored. Chrome's files are newer than the last
// reading.
func TestRotationWhileChromeCloses(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := startRotor(t)
	one := create(t, d, body{})
	drive(t, puppeteer, one.CDP, visit(site.url+"/leaving"), evaluate(keepOne), evaluate(`window.armed = true`))
	save(t, d, one.ID, "filesystem")
	last := site.token.Load()
	if last != 2 {
		t.Fatalf("the page sent %d of its two last requests", last)
	}
	two := create(t, d, body{"restore_from_session_id": one.ID})
	saw := text(t, drive(t, puppeteer, two.CDP, toTab("/leaving"), await(`window.__seen`))[1])
	// Its two last requests run at the same time, so either may be answered last.
	places := strings.Split(saw, "|")
	for i, want := range []string{"", "", "left", "left", "one"} {
		if i < 2 && places[i] != "1" && places[i] != "2" || i >= 2 && places[i] != want {
			t.Errorf("the first script saw %s", saw)
		}
	}
}

// TestRotationAfterTheRestore: a site changes its token with the first request and then
// again and again. Its newest value is everywhere, also after the verification, and the
// report does not count that as a loss.
func TestRotationAfterTheRestore(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	sites, ids := map[string]*rotor{}, map[string]string{}
	for _, s := range savings {
		site := startRotor(t)
		one := create(t, d, body{})
		drive(t, puppeteer, one.CDP, visit(site.url+"/turning"), await(`document.title === "turned"`),
			evaluate(`window.name = "one"`))
		save(t, d, one.ID, s.mode)
		sites[s.mode], ids[s.mode] = site, one.ID
	}
	restart(t, d)
	for _, s := range savings {
		t.Run(s.mode, func(t *testing.T) {
			site := sites[s.mode]
			before := site.token.Load()
			two := create(t, d, body{"restore_from_session_id": ids[s.mode]})
			report := verified(t, d, two.ID)
			got := drive(t, puppeteer, two.CDP, toTab("/turning"), await(`document.title === "turned"`),
				evaluate(`window.__seen`), evaluate(firstAgain), evaluate(`Object.keys(localStorage).sort().join()`))
			// The request for the document issued a token before the first script.
			first := strconv.FormatInt(before+1, 10)
			old := strconv.FormatInt(before, 10)
			if saw, want := text(t, got[2]), strings.Join([]string{first, first, old, old, "one"}, "|"); saw != want {
				t.Errorf("the first script saw %s, want %s", saw, want)
			}
			last := strconv.FormatInt(site.token.Load(), 10)
			if is, want := text(t, got[3]), strings.Join([]string{last, last, last, last, "one"}, "|"); is != want {
				t.Errorf("at the end there is %s, want %s", is, want)
			}
			if keys, want := text(t, got[4]), "token,token_"+last; keys != want {
				t.Errorf("localStorage has the keys %s, want %s", keys, want)
			}
			if report.Verification != restore.VerificationOK {
				t.Errorf("the verification says %s: %+v", report.Verification, report.Differences)
			}
			bySite := slices.ContainsFunc(report.Differences, func(d state.Difference) bool {
				return d.Component == state.ComponentCookies && d.By == state.BySite && slices.Contains(d.Names, "kept")
			})
			if !bySite {
				t.Errorf("the report does not attribute the changed cookie to the site: %+v", report.Differences)
			}
			for _, c := range report.Components {
				if c.Dropped > 0 && (c.Name == state.ComponentCookies || c.Name == state.ComponentLocalStorage) {
					t.Errorf("the report counts the site's change as a loss: %+v", c)
				}
			}
			end(t, d, two.ID, "")
		})
	}
}

// firstAgain reads the same as the first script again.
const firstAgain = `[one("session"), one("kept"), localStorage.token, sessionStorage.token, window.name].join("|")`

// verified returns the restore report of a session after its verification.
func verified(t testing.TB, d *daemon.Daemon, id string) (report restore.Report) {
	t.Helper()
	daemon.Eventually(t, stepDeadline, "the restore is verified", func() bool {
		d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+id+"/restore-report", nil).Into(t, &report)
		return report.Verification != restore.VerificationPending
	})
	return report
}
