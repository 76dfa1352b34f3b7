package e2e

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
)

const viewer = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html"

// byViewerPage opens the PDF viewer, an extension of Chrome that may open files, in a
// tab.
func byViewerPage(x *fileAttacker) {
	x.enter(obj{"engine": x.engine})
	for _, l := range x.wanted {
		page, _ := x.newPage("/")
		x.spy(page)
		if x.step(page, "Page.navigate", obj{"url": viewer}).Error != nil {
			continue // refused
		}
		x.ready(page)
		x.eval(page, `new Promise(ok => chrome.tabs.getCurrent(t => chrome.tabs.update(t.id, {url: "`+l.url()+`"}, ok)))`)
	}
}

// ready waits until the viewer's document exists, for the time of a step.
func (x *fileAttacker) ready(session string) {
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end); {
		if x.eval(session, `document.readyState + !!(self.chrome && chrome.tabs)`) == "completetrue" {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
}

// byViewerFrame drives the PDF viewer in a frame that shows a PDF.
func byViewerFrame(x *fileAttacker) {
	x.enter(obj{"engine": x.engine})
	x.newPage("/paper.pdf")
	found := x.find(viewer[:40])
	if found == "" {
		return // a protection hides it
	}
	frame := x.attach(found)
	x.ready(frame)
	for _, l := range x.wanted {
		own := "/" + rand.Text()
		page, _ := x.newPage(own)
		x.spy(page)
		x.eval(frame, `new Promise(ok => chrome.tabs.query({}, t => {
			const to = t.find(t => t.url == "`+x.site.URL+own+`"); chrome.tabs.update(to.id, {url: "`+l.url()+`"}, ok)}))`)
	}
}

// byDrop drops a page of the attacker on a page that does not accept drops. The dropped
// page frames the files.
func byDrop(x *fileAttacker) {
	x.enter(obj{"engine": x.engine})
	upload(x.t, x.d, x.s.ID, "evil.html", `<body><script>for (const url of ["`+strings.Join(x.urls(), `","`)+`"]) {
		const f = document.createElement("iframe"); f.src = url; document.body.append(f) }</script></body>`)
	page, _ := x.newPage("/")
	x.step("", "Target.setAutoAttach", obj{"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true})
	// Chrome delivers a drop to what it has drawn, so a drop right after the load may be
	// lost. Targets that existed before are announced too.
	for end := time.Now().Add(x.within(stepTime)); time.Now().Before(end) && !x.all(); {
		for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
			x.w.post(page, "Input.dispatchDragEvent", obj{"type": kind, "x": 50, "y": 50,
				"data": obj{"items": []obj{}, "files": []string{"evil.html"}, "dragOperationsMask": 1}})
		}
		x.spyOnNew(dropTime)
	}
}

// dropTime is how long to wait for a drop to open its page before the next drop.
const dropTime = 2 * time.Second

// spyOnNew spies on every announced target, until all wanted files have arrived or the
// time is over.
func (x *fileAttacker) spyOnNew(within time.Duration) {
	for end := time.Now().Add(within); time.Now().Before(end) && !x.all(); {
		e, ok := x.w.find("", "Target.attachedToTarget")
		if !ok {
			x.pause()
			continue
		}
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

// byBackList goes back to files in the history of an imported tab.
func byBackList(x *fileAttacker) {
	x.restore()
	page, _ := x.w.page()
	x.spy(page)
	x.eval(page, `history.go(-1)`)
	x.awaitEvent("Page.loadEventFired")
	var list struct {
		Entries []struct {
			ID  int64
			URL string
		}
	}
	_ = json.Unmarshal(x.step(page, "Page.getNavigationHistory", nil).Result, &list) // an empty answer has none
	for _, e := range list.Entries {
		if strings.HasPrefix(e.URL, "file:") && x.step(page, "Page.navigateToHistoryEntry", obj{"entryId": e.ID}).Error == nil {
			x.awaitEvent("Page.loadEventFired")
		}
	}
}

// opener is an extension that may control tabs.
var opener = map[string]string{
	"manifest.json": `{"manifest_version": 3, "name": "Opener", "version": "1.0", "permissions": ["tabs"], "host_permissions": ["<all_urls>"]}`,
	"page.html":     `<title>opener</title>`,
}

// upload uploads the extension, with a name, and returns its ID.
func (x *fileAttacker) upload(name string) string {
	x.t.Helper()
	files := map[string]string{}
	for file, content := range opener {
		files[file] = strings.ReplaceAll(content, "Opener", name)
	}
	return uploadExtension(x.t, x.d, files)
}

// uploadExtension uploads an extension with these files and returns its ID.
func uploadExtension(t testing.TB, d *daemon.Daemon, files map[string]string) string {
	t.Helper()
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for file, content := range files {
		f, err := z.Create(file)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var e struct{ ID string }
	d.Send(t, daemon.Key, http.MethodPost, "/v1/extensions", &packed, http.Header{"Content-Type": {"application/zip"}}).Into(t, &e)
	return e.ID
}

// install uploads the extension and creates a session with it. In a shared session it
// takes one of those that the session has. It returns the extension's ID and the CDP
// session of one of its pages.
func (x *fileAttacker) install() (id, own string) {
	x.t.Helper()
	if x.shared {
		id, x.extensions = x.extensions[0], x.extensions[1:]
	} else {
		id = x.upload("Opener")
	}
	x.enter(obj{"engine": x.engine, "extensions": []string{id}})
	own, _ = x.w.page()
	x.w.open(own, "chrome-extension://"+id+"/page.html")
	return id, own
}

// bySettings makes an extension open chrome://extensions, where an added script lets it
// read files.
func bySettings(x *fileAttacker) {
	x.settings(func(page, script string) {
		x.step(page, "Page.addScriptToEvaluateOnNewDocument", obj{"source": `if (location.protocol == "chrome:") ` + script})
	})
}

// byCondition is bySettings with a breakpoint whose condition runs the script and never
// stops.
func byCondition(x *fileAttacker) {
	x.settings(func(page, script string) {
		x.step(page, "Debugger.enable", nil)
		x.step(page, "Debugger.setBreakpointByUrl", obj{"lineNumber": 0, "urlRegex": "^chrome://extensions/.*", "condition": script + ", false"})
	})
}

// settings adds a script with add to chrome://extensions, which an extension then opens.
func (x *fileAttacker) settings(add func(page, script string)) {
	id, own := x.install()
	page, _ := x.newPage("/")
	x.spy(page)
	add(page, `chrome.developerPrivate.updateExtensionConfiguration({extensionId: "`+id+`", fileAccess: true}, () => console.log("granted"))`)
	x.sendTab(own, "chrome://extensions")
	x.until("granted")
	fresh, _ := x.newPage("/") // the extension was reloaded, and its page with it
	x.step(fresh, "Runtime.enable", nil)
	x.step(fresh, "Page.enable", nil)
	x.step(fresh, "Page.navigate", obj{"url": "chrome-extension://" + id + "/page.html"})
	for _, l := range x.wanted {
		x.eval(fresh, `fetch("`+l.url()+`").then(r => r.text()).then(t => console.log(t), String)`)
	}
}

// sendTab makes the extension's page navigate the tab of the attacker's site to an address.
func (x *fileAttacker) sendTab(own, url string) {
	x.eval(own, `new Promise(ok => chrome.tabs.query({}, t => chrome.tabs.update(t.find(t => t.url == "`+x.site.URL+`/").id, {url: "`+url+`"}, ok)))`)
}
