package e2e

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

const viewer = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html"

// routes are the ways by which a CDP client came to the machine's files.
var routes = []struct {
	name  string
	shell bool // the shell engine has it too
	take  func(*thief)
}{
	{"the PDF viewer as a page", false, byViewerPage},
	{"the PDF viewer in a PDF", false, byViewerFrame},
	{"a dropped page", true, byDrop},
	{"a back list", false, byBackList},
	{"an extension's settings", false, bySettings},
	{"a breakpoint's condition", false, byCondition},
}

// TestRoutes tries each route with no wall, with each wall alone and with all, by root
// and by an ordinary user; make test has each wall once. With none the bytes arrive;
// else they do not.
func TestRoutes(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"root", "user"} {
		for _, wall := range walls {
			if wall.short != user && os.Getenv("STASIS_LONG") == "" {
				continue
			}
			t.Run(user+"/"+wall.name, func(t *testing.T) {
				o := daemon.Options{}
				if user != "root" {
					o = byOrdinaryUser(t)
				}
				o.Tags = wall.tags
				d := daemon.Start(t, o)
				tried := 0
				for _, route := range routes {
					for _, engine := range []string{"chrome", "shell"} {
						if engine == "shell" && !route.shell || wall.engine != "" && wall.engine != engine {
							continue
						}
						t.Run(route.name+"/"+engine, func(t *testing.T) {
							x := newThief(t, d)
							x.engine, x.open = engine, wall.open
							if user != "root" {
								x.steal(secrets[tried%len(secrets)])
								tried++
							}
							route.take(x)
							if got := x.got(); got != wall.open {
								t.Errorf("the file's bytes arrived: %v", got)
							}
							x.leave()
						})
					}
				}
			})
		}
	}
}

// byViewerPage opens the PDF viewer, an extension of Chrome's own that may open
// files, in a tab.
func byViewerPage(x *thief) {
	x.enter(obj{"engine": x.engine})
	page, _ := x.w.page()
	x.spy(page)
	x.step(page, "Page.navigate", obj{"url": viewer})
	x.eval(page, `new Promise(ok => chrome.tabs.query({active: true}, t => chrome.tabs.update(t[0].id, {url: "`+x.url()+`"}, ok)))`)
}

// byViewerFrame drives the PDF viewer where it shows a PDF.
func byViewerFrame(x *thief) {
	x.enter(obj{"engine": x.engine, "start_url": x.site.URL + "/paper.pdf"})
	frame := x.attach(x.find(viewer[:40]))
	page, _ := x.newPage()
	x.spy(page)
	x.eval(frame, `new Promise(ok => chrome.tabs.query({}, t => {
		const to = t.find(t => t.url == "`+x.site.URL+`/"); chrome.tabs.update(to.id, {url: "`+x.url()+`"}, ok)}))`)
}

// byDrop drops a page of its own on a page that does not take it. It frames the
// file.
func byDrop(x *thief) {
	x.enter(obj{"engine": x.engine})
	upload(x.t, x.d, x.s.ID, "evil.html", `<body><script>
		const f = document.createElement("iframe"); f.src = "`+x.url()+`"; document.body.append(f)</script></body>`)
	page, _ := x.newPage()
	x.w.open(page, x.site.URL+"/")
	x.step("", "Target.setAutoAttach", obj{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
	x.w.forget()
	for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
		x.w.post(page, "Input.dispatchDragEvent", obj{"type": kind, "x": 50, "y": 50,
			"data": obj{"items": []obj{}, "files": []string{"evil.html"}, "dragOperationsMask": 1}})
	}
	if e, ok := x.hear("Target.attachedToTarget"); ok {
		var at struct {
			SessionID string `json:"sessionId"`
		}
		if err := json.Unmarshal(e.Params, &at); err != nil {
			x.t.Fatal(err)
		}
		x.spy(at.SessionID)
		x.w.post(at.SessionID, "Runtime.runIfWaitingForDebugger", nil)
	}
}

// byBackList goes back to a file in a tab that was imported.
func byBackList(x *thief) {
	x.imported(x.url(), x.site.URL+"/")
	page, _ := x.w.page()
	x.spy(page)
	var list struct {
		Entries []struct {
			ID  int64
			URL string
		}
	}
	_ = json.Unmarshal(x.step(page, "Page.getNavigationHistory", nil).Result, &list) // an empty answer has none
	for _, e := range list.Entries {
		if e.URL == x.url() {
			x.step(page, "Page.navigateToHistoryEntry", obj{"entryId": e.ID})
		}
	}
	x.eval(page, `history.go(-1)`)
}

// imported begins a session on a profile whose one tab went from one address to
// another.
func (x *thief) imported(from, to string) {
	x.t.Helper()
	a := imports(x.t, x.d, "datadir", visited(x.t, from, to))
	x.enter(obj{"restore_from_environment_id": a.Snapshot.ID, "restore_tabs": true})
}

// visited is a profile of a Chrome that went to these addresses, as a zip.
func visited(t *testing.T, urls ...string) []byte {
	t.Helper()
	dir := daemon.DataDir(t)
	const uid = 12345
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "--",
		"/usr/lib/chromium/chromium", "--ozone-platform=headless", "--ozone-override-screen-size=1280,900", "--no-first-run", "--password-store=basic",
		"--disable-background-networking", "--remote-debugging-port=0", "--user-data-dir="+dir+"/profile", "about:blank")
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=/usr/bin:/bin"}
	says, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(says); lines.Scan(); {
			if _, at, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
				address <- at
			}
		}
	}()
	w := dial(t, <-address)
	page, _ := w.page()
	for _, url := range urls {
		w.open(page, url)
	}
	<-w.post("", "Browser.close", nil)
	if err := cmd.Wait(); err != nil {
		t.Logf("Chrome ended with %v", err)
	}
	return zipOf(t, dir+"/profile", "profile")
}

// opener is an extension that may drive tabs.
var opener = map[string]string{
	"manifest.json": `{"manifest_version": 3, "name": "Opener", "version": "1.0", "permissions": ["tabs"], "host_permissions": ["<all_urls>"]}`,
	"page.html":     `<title>opener</title>`,
}

// install uploads the extension and begins a session with it.
func (x *thief) install() (id string) {
	x.t.Helper()
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, content := range opener {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		x.t.Fatal(err)
	}
	var e struct{ ID string }
	x.d.Send(x.t, daemon.Key, http.MethodPost, "/v1/extensions", &packed, http.Header{"Content-Type": {"application/zip"}}).Into(x.t, &e)
	x.enter(obj{"engine": x.engine, "extensions": []string{e.ID}})
	return e.ID
}

// bySettings has an extension open Chrome's page of extensions, where an added
// script lets it read files.
func bySettings(x *thief) {
	x.settings(func(page, script string) {
		x.step(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `if (location.protocol == "chrome:") ` + script})
	})
}

// byCondition is bySettings with a breakpoint that never stops.
func byCondition(x *thief) {
	x.settings(func(page, script string) {
		x.step(page, "Debugger.enable", nil)
		x.step(page, "Debugger.setBreakpointByUrl", obj{"lineNumber": 0, "urlRegex": "^chrome://extensions/.*", "condition": script + ", false"})
	})
}

// settings has plant put a script into Chrome's page of extensions, which an extension
// opens then.
func (x *thief) settings(plant func(page, script string)) {
	id := x.install()
	own, _ := x.w.page()
	x.w.open(own, "chrome-extension://"+id+"/page.html")
	page, _ := x.newPage()
	x.w.open(page, x.site.URL+"/")
	x.spy(page)
	plant(page, `chrome.developerPrivate.updateExtensionConfiguration({extensionId: "`+id+`", fileAccess: true}, () => console.log("granted"))`)
	x.eval(own, `new Promise(ok => chrome.tabs.query({}, t => chrome.tabs.update(t.find(t => t.url == "`+x.site.URL+`/").id, {url: "chrome://extensions"}, ok)))`)
	x.until("granted")
	fresh, _ := x.newPage() // the extension was loaded anew, and its page with it
	x.step(fresh, "Runtime.enable", nil)
	x.step(fresh, "Page.enable", nil)
	x.step(fresh, "Page.navigate", obj{"url": "chrome-extension://" + id + "/page.html"})
	x.eval(fresh, `fetch("`+x.url()+`").then(r => r.text()).then(t => console.log(t), String)`)
}
