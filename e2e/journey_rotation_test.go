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

// startRotor starts a rotor under two names, so that rotors in one session have their own
// cookies.
func startRotor(t testing.TB, name string) *rotor {
	t.Helper()
	r := &rotor{log: weblog.New(time.Now)}
	server := httptest.NewServer(r.log.Wrap(http.HandlerFunc(r.answer)))
	t.Cleanup(server.Close)
	r.url = strings.Replace(server.URL, "127.0.0.1", name+".localhost", 1)
	r.other = strings.Replace(server.URL, "127.0.0.1", name+"-other.localhost", 1)
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

// TestRotation: a session has a tab of each rotor, and is restored from both kinds of
// snapshots by the next daemon.
//
//   - The first script of a restored page reads its cookies, both storages and window.name,
//     also in a frame of another site. The site is asked only for the tab's own documents.
//   - What a site writes when its page is left, and what it sets with its last response, is
//     restored. Chrome's files are newer than the last reading.
//   - A site changes its token with the first request and then again and again. Its newest
//     value is everywhere, also after the verification, and the report does not count that
//     as a loss.
func TestRotation(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	all := map[string]rotors{}
	for _, s := range savings {
		all[s.mode] = savedRotors(t, d, s.mode)
	}
	restart(t, d)
	for _, s := range savings {
		t.Run(s.mode, func(t *testing.T) {
			site := all[s.mode]
			since, before := site.order.log.Len(), site.turning.token.Load()
			two := create(t, d, body{"restore_from_session_id": site.session})
			if two.Restored.Datadir != s.datadir {
				t.Fatalf("the restored datadir is %s", two.Restored.Datadir)
			}
			report := verified(t, d, two.ID)
			if report.Verification != restore.VerificationOK {
				t.Errorf("the verification says %s: %+v", report.Verification, report.Differences)
			}
			w := dial(t, two.CDP)
			checkOrder(t, w, site.order, since, two.Restored.Components)
			if s.mode == "filesystem" {
				checkLeaving(t, w)
			}
			checkTurning(t, w, site.turning, before, report)
			end(t, d, two.ID, "")
		})
	}
}

// rotors are a session of TestRotation and its sites, by the page that is open.
type rotors struct {
	session                 string
	order, leaving, turning *rotor
}

// leaveTries is how many sessions are saved as files until one's page sends its last
// requests. Chrome gives pages about one second for that, and on a busy machine the page of
// a background tab may not run in time.
const leaveTries = 3

// savedRotors saves a session with a tab of each rotor.
func savedRotors(t *testing.T, d *daemon.Daemon, mode string) (r rotors) {
	t.Helper()
	for range leaveTries {
		s := create(t, d, body{})
		r = rotors{s.ID, startRotor(t, "order"), startRotor(t, "leaving"), startRotor(t, "turning")}
		r.open(dial(t, s.CDP))
		save(t, d, s.ID, mode)
		if mode != "filesystem" || r.leaving.token.Load() == 2 {
			return r
		}
	}
	t.Fatalf("the page sent %d of its two last requests", r.leaving.token.Load())
	return r
}

// open opens the pages and stores their state. The last tab is in front, because Chrome
// slows down the timers of the others.
func (r rotors) open(w *wire) {
	order, _ := w.page()
	w.open(order, r.order.url+"/order")
	w.until(order, `window.__frame === "||||"`)
	w.eval(order, keepOne)
	w.eval(order, `frames[0].postMessage("inner", "*")`)
	w.until(order, `window.__frame === "set"`)
	leaving := w.newTab()
	w.open(leaving, r.leaving.url+"/leaving")
	w.eval(leaving, keepOne)
	w.eval(leaving, `window.armed = true`)
	turning := w.newTab()
	w.open(turning, r.turning.url+"/turning")
	w.until(turning, `document.title === "turned"`)
	w.eval(turning, `window.name = "one"`)
}

// until waits until an expression is true in a page.
func (w *wire) until(page, expression string) {
	w.t.Helper()
	daemon.Eventually(w.t, stepDeadline, expression, func() bool { return w.eval(page, "String(!!("+expression+"))") == "true" })
}

// awaitRestored waits until the page of a restored tab has loaded. Before its document has
// committed, scripts run in a blank one, although the target has the page's address.
func (w *wire) awaitRestored(page string) {
	w.t.Helper()
	w.until(page, `location.protocol.startsWith("http") && document.readyState === "complete"`)
}

// checkOrder checks what the first scripts of /order and its frame read, and the site's
// log after a position.
func checkOrder(t *testing.T, w *wire, site *rotor, since int, lines []state.Component) {
	t.Helper()
	page := w.attach(w.tab("/order"))
	w.until(page, `window.__frame`)
	if saw := w.eval(page, `window.__seen`); saw != "one|one|one|one|one" {
		t.Errorf("the page's first script saw %s", saw)
	}
	if saw := w.eval(page, `window.__frame`); saw != "||inner|inner|" && !explained(lines, "^") {
		t.Errorf("the frame's first script saw %s, and the report gives no reason", saw)
	}
	asked := []string{}
	for _, r := range site.log.Since(since) {
		if r.Path != "/favicon.ico" {
			asked = append(asked, r.Method+" http://"+r.Host+r.Path)
		}
	}
	slices.Sort(asked)
	want := []string{"GET " + site.other + "/inner", "GET " + site.url + "/order"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("requests to the site (-want +got):\n%s", diff)
	}
}

// checkLeaving checks what the first script of /leaving reads after Chrome was closed.
func checkLeaving(t *testing.T, w *wire) {
	t.Helper()
	page := w.attach(w.tab("/leaving"))
	w.until(page, `window.__seen`)
	saw := w.eval(page, `window.__seen`)
	// Its two last requests run at the same time, so either may be answered last.
	places := strings.Split(saw, "|")
	for i, want := range []string{"", "", "left", "left", "one"} {
		if i < 2 && places[i] != "1" && places[i] != "2" || i >= 2 && places[i] != want {
			t.Errorf("the first script saw %s", saw)
		}
	}
}

// checkTurning checks /turning, whose token was before when it was saved, and what the
// restore report says about it.
func checkTurning(t *testing.T, w *wire, site *rotor, before int64, report restore.Report) {
	t.Helper()
	page := w.attach(w.tab("/turning"))
	w.until(page, `document.title === "turned"`)
	// The request for the document issued a token before the first script.
	first := strconv.FormatInt(before+1, 10)
	old := strconv.FormatInt(before, 10)
	if saw, want := w.eval(page, `window.__seen`), strings.Join([]string{first, first, old, old, "one"}, "|"); saw != want {
		t.Errorf("the first script saw %s, want %s", saw, want)
	}
	last := strconv.FormatInt(site.token.Load(), 10)
	if is, want := w.eval(page, firstAgain), strings.Join([]string{last, last, last, last, "one"}, "|"); is != want {
		t.Errorf("at the end there is %s, want %s", is, want)
	}
	if keys, want := w.eval(page, `Object.keys(localStorage).sort().join()`), "token,token_"+last; keys != want {
		t.Errorf("localStorage has the keys %s, want %s", keys, want)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(site.url, "http://"), ":")
	bySite := slices.ContainsFunc(report.Differences, func(d state.Difference) bool {
		return d.Component == state.ComponentCookies && d.By == state.BySite && slices.Contains(d.Names, "kept") && strings.Contains(d.Origin, host)
	})
	if !bySite {
		t.Errorf("the report does not attribute the changed cookie to the site: %+v", report.Differences)
	}
	for _, c := range report.Components {
		if c.Dropped > 0 && (c.Name == state.ComponentCookies || c.Name == state.ComponentLocalStorage && c.Origin == site.url+"/") {
			t.Errorf("the report counts the site's change as a loss: %+v", c)
		}
	}
}

// explained reports whether a report gives a reason for storage with such a key.
func explained(lines []state.Component, key string) bool {
	return slices.ContainsFunc(lines, func(c state.Component) bool {
		return strings.Contains(c.Origin, key) && c.Reason.Code != ""
	})
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
