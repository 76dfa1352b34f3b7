package mux

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// chromeUID is the user that Chrome runs as when the tests run as root, because Chrome's
// sandbox refuses root.
const chromeUID = 210900

// pipe combines our ends of Chrome's two pipes.
type pipe struct {
	io.Reader
	io.Writer
	close func() error
}

func (p pipe) Close() error { return p.close() }

// chrome starts the machine's Chromium and returns its mux and the folder with the
// session's files.
func chrome(t *testing.T, flags ...string) (*Mux, string, <-chan struct{}) {
	t.Helper()
	path := os.Getenv("STASIS_CHROME")
	if path == "" {
		path = "/usr/lib/chromium/chromium"
	}
	// Not t.TempDir: other users cannot enter its parents.
	home, err := os.MkdirTemp("", "stasis-mux-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	files := filepath.Join(home, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{
		"--remote-debugging-pipe", "--ozone-platform=headless", "--ozone-override-screen-size=1920,1080", "--window-size=1280,900",
		"--enable-features=CDPScreenshotNewSurface", "--no-first-run", "--no-default-browser-check", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--password-store=basic", "--user-data-dir=" + home + "/data",
	}, append(flags, "about:blank")...)...)
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: chromeUID, Gid: chromeUID}
		for _, dir := range []string{home, files} {
			if err := os.Chown(dir, chromeUID, chromeUID); err != nil {
				t.Fatal(err)
			}
		}
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	m := New(pipe{ourIn, ourOut, func() error { return errors.Join(ourOut.Close(), ourIn.Close()) }},
		Options{Policy: Policy{FilesDir: files}, KeepPage: true, NoHiddenTargets: true})
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-exited
	})
	return m, files, exited
}

// page opens a page as a client and returns its target and session IDs.
func (c *testConn) page(url string) (targetID, session string) {
	c.t.Helper()
	var made struct{ TargetID string }
	c.result(1000, "", "Target.createTarget", fmt.Sprintf(`{"url":%q}`, url), &made)
	var on struct{ SessionID string }
	c.result(1001, "", "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, made.TargetID), &on)
	// Wait until the page has loaded and painted: before that it accepts no input and no
	// screenshot. The first document is replaced in the meantime, and its context
	// destroyed.
	ready := fmt.Sprintf(`{"awaitPromise":true,"expression":%q}`, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
		() => done(location.protocol === "http:" && document.readyState === "complete"))))`)
	for deadline := time.Now().Add(patience); ; {
		if got := c.call(1003, on.SessionID, "Runtime.evaluate", ready); strings.Contains(string(got.Result), `"value":true`) {
			return made.TargetID, on.SessionID
		}
		if time.Now().After(deadline) {
			c.t.Fatal("the page does not load")
		}
	}
}

func (c *testConn) result(id int64, session, method, params string, v any) {
	c.t.Helper()
	got := c.call(id, session, method, params)
	if got.Error != nil {
		c.t.Fatalf("%s %s: %+v", method, params, got.Error)
	}
	if err := json.Unmarshal(got.Result, v); err != nil {
		c.t.Fatal(err)
	}
}

func (c *testConn) eval(session, script string) string {
	c.t.Helper()
	var r struct{ Result struct{ Value any } }
	c.result(1002, session, "Runtime.evaluate", fmt.Sprintf(`{"expression":%q,"awaitPromise":true}`, script), &r)
	return fmt.Sprint(r.Result.Value)
}

func site(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<title>site</title><input type=file id=f>`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Two clients and the daemon share one Chrome. What a client enables or overrides does
// not affect the others, and ends when it disconnects.
func TestChromeTwoClients(t *testing.T) {
	m, files, _ := chrome(t)
	url := site(t)
	a, b := connect(t, m, ServeOptions{}), connect(t, m, ServeOptions{})
	id, sa := a.page(url)
	_, sb := b.page(url)
	if got := a.call(1, sb, "Runtime.evaluate", `{"expression":"1"}`); got.Error == nil {
		t.Error("a client can use another client's session")
	}
	var on struct{ SessionID string }
	b.result(2, "", "Target.attachToTarget", fmt.Sprintf(`{"targetId":%q,"flatten":true}`, id), &on)
	a.call(3, sa, "Emulation.setTimezoneOverride", `{"timezoneId":"Asia/Tokyo"}`)
	zone := `Intl.DateTimeFormat().resolvedOptions().timeZone`
	if got := b.eval(on.SessionID, zone); got != "Asia/Tokyo" {
		t.Errorf("the override is not in force: %s", got)
	}
	var shot struct{ Data string }
	b.result(4, sb, "Page.captureScreenshot", "{}", &shot)
	if len(shot.Data) < 1000 {
		t.Errorf("a screenshot of %d bytes", len(shot.Data))
	}

	// Files: only those of the session.
	if err := os.WriteFile(filepath.Join(files, "up.txt"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	var node struct{ Result struct{ ObjectID string } }
	b.result(5, sb, "Runtime.evaluate", `{"expression":"document.querySelector('#f')"}`, &node)
	give := func(path string) message {
		return b.call(6, sb, "DOM.setFileInputFiles", fmt.Sprintf(`{"files":[%q],"objectId":%q}`, path, node.Result.ObjectID))
	}
	if got := give("/etc/passwd"); got.Error == nil {
		t.Error("/etc/passwd was given to a page")
	}
	if got := give("up.txt"); got.Error != nil {
		t.Errorf("the session's own file: %+v", got.Error)
	}
	if got := b.eval(sb, `document.querySelector('#f').files[0].text()`); got != "hello" {
		t.Errorf("the page reads %q", got)
	}

	close(a.in)
	if err := a.gone(CloseNormal); err != nil {
		t.Error(err)
	}
	for until := time.Now().Add(time.Minute); b.eval(on.SessionID, zone) == "Asia/Tokyo"; {
		if time.Now().After(until) {
			t.Fatal("the override still applies after its client disconnected")
		}
	}
}

// Attacks on a real Chrome: none of them opens a file or one of Chrome's own pages.
func TestChromeAttacks(t *testing.T) {
	m, _, _ := chrome(t)
	c := connect(t, m, ServeOptions{})
	_, s := c.page(site(t))
	before := c.eval(s, "location.href")
	for _, url := range []string{"file:///etc/passwd", "\u0000FI\tLE:///etc/passwd", "view-source:file:///etc/passwd", "chrome://version", "about:version"} {
		q, err := json.Marshal(map[string]string{"url": url})
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{"Page.navigate", "Target.createTarget"} {
			if got := c.call(1, s, method, string(q)); got.Error == nil || !strings.Contains(got.Error.Message, "Stasis does not allow") {
				t.Errorf("%s %q: %+v", method, url, got)
			}
		}
	}
	// Keys reach the page but not Chrome's shortcuts (history, developer tools, view
	// source).
	c.eval(s, `window.keys=[];addEventListener('keydown',e=>keys.push(e.code));1`)
	for code, vk := range map[string]string{"KeyH": "72,\"modifiers\":2", "F12": "123", "KeyU": "85,\"modifiers\":2", "KeyT": "84,\"modifiers\":2"} {
		n, _, _ := strings.Cut(vk, ",")
		if got := c.call(2, s, "Input.dispatchKeyEvent", fmt.Sprintf(`{"type":"rawKeyDown","code":%q,"nativeVirtualKeyCode":%s,"windowsVirtualKeyCode":%s}`, code, n, vk)); got.Error != nil {
			t.Errorf("%+v", got.Error)
		}
	}
	if got := c.eval(s, "keys.length"); got != "4" {
		t.Errorf("the page saw %s keys", got)
	}
	if got := c.eval(s, "location.href"); got != before {
		t.Errorf("the page is at %s", got)
	}
	if n := len(m.Pages()); n != 2 {
		t.Errorf("%d pages, want the first and ours", n)
	}
	var all struct{ TargetInfos []targetInfo }
	c.result(3, "", "Target.getTargets", `{"filter":[{}]}`, &all)
	for _, info := range all.TargetInfos {
		if info.Type == "browser_ui" || scheme(info.URL) == "chrome" {
			t.Errorf("a client sees %+v", info)
		}
	}
	if got := c.call(4, "", "Browser.crash", "{}"); got.Error == nil {
		t.Error("Chrome was crashed")
	}
	c.call(5, "", "Browser.close", "{}")
	if err := c.gone(CloseNormal); err != nil {
		t.Error(err)
	}
	d := drive(t, m)
	if _, err := cdp.Call(t.Context(), d, browser.GetVersion, cdp.Empty{}); err != nil {
		t.Errorf("Chrome ended with a client's Browser.close: %v", err)
	}
}

// Clients cannot see a foreign page, which an extension may open. Libraries attach to
// every page that they see, and give up if one refuses their scripts. A client that was
// attached before loses its session.
func TestChromeForeignPages(t *testing.T) {
	m, _, _ := chrome(t)
	url := site(t)
	had := connect(t, m, ServeOptions{})
	id, s := had.page(url)
	d := drive(t, m)
	on, err := cdp.Call(t.Context(), d, target.AttachToTarget, target.AttachToTargetParams{TargetID: target.ID(id), Flatten: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Session(on.SessionID).Call(t.Context(), "Page.navigate", map[string]string{"url": "chrome://version"}, nil); err != nil {
		t.Fatal(err)
	}
	other, err := cdp.Call(t.Context(), d, target.CreateTarget, target.CreateTargetParams{URL: "chrome://credits"})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(patience); m.Allowed(target.ID(id)) || m.Allowed(other.TargetID); {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatal("the mux still shows the pages")
		}
	}
	late := connect(t, m, ServeOptions{})
	late.send(`{"id":1,"method":"Target.setDiscoverTargets","params":{"discover":true,"filter":[{}]}}`)
	late.send(`{"id":2,"method":"Target.setAutoAttach","params":{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true,"filter":[{}]}}`)
	late.send(`{"id":3,"method":"Target.getTargets","params":{"filter":[{}]}}`)
	for answers := 0; answers < 3; {
		e := late.recv()
		if said := string(e.Params) + string(e.Result); strings.Contains(said, "chrome://") {
			t.Errorf("a client got %s %s", e.Method, said)
		}
		if e.ID != nil {
			answers++
		}
	}
	for _, hidden := range []string{id, string(other.TargetID)} {
		for _, method := range []string{"Target.attachToTarget", "Target.closeTarget"} {
			if got := late.call(4, "", method, fmt.Sprintf(`{"targetId":%q,"flatten":true}`, hidden)); got.Error == nil {
				t.Errorf("%s: %s", method, got.Result)
			}
		}
	}
	if got := had.call(5, s, "Runtime.evaluate", `{"expression":"1"}`); got.Error == nil {
		t.Errorf("the earlier client still has its session: %s", got.Result)
	}
	if err := d.Session(on.SessionID).Call(t.Context(), "Page.navigate", map[string]string{"url": url}, nil); err != nil {
		t.Fatal(err)
	}
	for back := ""; back != "Target.targetInfoChanged"; { // then all clients can see it
		e := late.recv()
		if strings.Contains(string(e.Params), id) {
			back = e.Method
		}
	}
	var shown struct{ TargetInfo targetInfo }
	late.result(7, "", "Target.getTargetInfo", fmt.Sprintf(`{"targetId":%q}`, id), &shown)
}

// Closing every page ends neither Chrome nor the profile with its session cookies.
func TestChromeKeepsOnePage(t *testing.T) {
	m, _, _ := chrome(t)
	c := connect(t, m, ServeOptions{})
	c.page(site(t))
	c.call(1, "", "Storage.setCookies", `{"cookies":[{"name":"s","value":"1","url":"http://a.test/"}]}`)
	for _, id := range m.Pages()[:1] {
		c.call(2, "", "Target.closeTarget", fmt.Sprintf(`{"targetId":%q}`, id))
	}
	for _, id := range m.Pages() {
		c.call(2, "", "Target.closeTarget", fmt.Sprintf(`{"targetId":%q}`, id))
	}
	var r struct{ Cookies []struct{ Name string } }
	c.result(3, "", "Storage.getCookies", "{}", &r)
	if len(r.Cookies) != 1 {
		t.Errorf("remaining cookies: %+v", r.Cookies)
	}
	if n := len(m.Pages()); n < 1 {
		t.Error("no page remains")
	}
}

// The driver opens a tab that no client can see. Its Browser.close ends Chrome.
func TestChromeDriver(t *testing.T) {
	m, _, exited := chrome(t)
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Target.setDiscoverTargets", `{"discover":true}`)
	c.call(2, "", "Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":true,"flatten":true}`)
	d := drive(t, m)
	id, err := d.OpenHidden(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	on, err := cdp.Call(t.Context(), d, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Result struct {
			Value int `json:"value"`
		} `json:"result"`
	}
	if err := d.Session(on.SessionID).Call(t.Context(), "Runtime.evaluate", map[string]string{"expression": "6*7"}, &r); err != nil || r.Result.Value != 42 {
		t.Errorf("in the hidden tab: %d, %v", r.Result.Value, err)
	}
	if err := d.Call(t.Context(), "Target.closeTarget", map[string]any{"targetId": id}, nil); err != nil {
		t.Error(err)
	}
	c.send(`{"id":3,"method":"Target.getTargets"}`)
	for {
		e := c.recv()
		if strings.Contains(string(e.Params)+string(e.Result), string(id)) {
			t.Errorf("a client got an event of the hidden tab: %s %s%s", e.Method, e.Params, e.Result)
		}
		if e.ID != nil {
			break
		}
	}

	if err := d.Call(t.Context(), "Browser.close", nil, nil); err != nil {
		t.Logf("Browser.close: %v", err) // Chrome may exit before it answers
	}
	<-exited
	<-m.Done()
}
