package mux

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// Permissions that clients set are recorded after Chrome has accepted them, only for the
// session's own profile, and until they are reset.
func TestPermissionsAreRecorded(t *testing.T) {
	m, _ := start(t, Options{}, func(f *fake, q message) []byte {
		switch {
		case strings.Contains(string(q.Params), "refused"):
			return fmt.Appendf(nil, `{"id":%d,"sessionId":%q,"error":{"code":-32000,"message":"no"}}`, *q.ID, q.Session)
		case q.Method == "Target.createBrowserContext":
			f.answer(q, `{"browserContextId":"MADE"}`)
			return []byte{}
		}
		return nil
	})
	c := connect(t, m, ServeOptions{})
	check := func(want string) {
		t.Helper()
		got, err := json.Marshal(m.Permissions.Granted())
		if err != nil || string(got) != want {
			t.Errorf("recorded %s, want %s (%v)", got, want, err)
		}
	}
	c.call(1, "", "Target.createBrowserContext", `{}`)
	c.call(2, "", "Browser.setPermission", `{"permission":{"name":"midi","sysex":true},"setting":"granted","origin":"https://a.example"}`)
	c.call(3, "", "Browser.setPermission", `{"permission":{"name":"refused"},"setting":"granted"}`)
	c.call(4, "", "Browser.setPermission", `{"permission":{"name":"camera"},"setting":"denied","browserContextId":"MADE"}`)
	check(`[{"origin":"https://a.example","permission":{"name":"midi","sysex":true},"setting":"granted"}]`)
	c.call(5, "", "Browser.setPermission", `{"permission":{"name":"midi","sysex":true},"setting":"denied","origin":"https://a.example"}`)
	c.call(6, "", "Browser.grantPermissions", `{"permissions":["geolocation"],"browserContextId":"DEFAULT"}`)
	check(`[{"origin":"https://a.example","permission":{"name":"midi","sysex":true},"setting":"denied"},{"all":["geolocation"]}]`)
	// Browser.grantPermissions replaces all other permissions of its origin.
	c.call(7, "", "Browser.grantPermissions", `{"permissions":["camera"],"origin":"https://a.example"}`)
	check(`[{"all":["geolocation"]},{"origin":"https://a.example","all":["camera"]}]`)
	c.call(8, "", "Browser.resetPermissions", `{"browserContextId":"MADE"}`)
	check(`[{"all":["geolocation"]},{"origin":"https://a.example","all":["camera"]}]`)
	c.call(9, "", "Browser.resetPermissions", `{}`)
	check(`null`)
	m.Permissions.SetGranted([]state.PermissionGrant{{All: []string{"midi"}}})
	check(`[{"all":["midi"]}]`)
	for i := range int64(maxGranted + 5) {
		c.call(20+i, "", "Browser.setPermission", fmt.Sprintf(`{"permission":{"name":"midi"},"setting":"granted","origin":"https://a%d.example"}`, i))
	}
	if got := m.Permissions.Granted(); len(got) != maxGranted || got[maxGranted-1].Origin != fmt.Sprintf("https://a%d.example", maxGranted+4) {
		t.Errorf("%d are recorded; the last is of %s", len(got), got[len(got)-1].Origin)
	}
}

// With an OnCreate function, a client's new page is opened blank, and the client gets its
// answer after the setup.
func TestCreatedPagesAreOpenedBlank(t *testing.T) {
	m, f := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method == "Target.createTarget" {
			f.answer(q, `{"targetId":"T"}`)
			return []byte{}
		}
		return nil
	})
	type opened struct {
		id, url  string
		answered func(bool)
	}
	pages := make(chan opened, 1)
	c := connect(t, m, ServeOptions{})
	m.Hooks.OnCreate(func(id target.ID, url string, answered func(bool)) { pages <- opened{string(id), url, answered} })
	for sent, want := range map[string]string{"http://a.example/": "http://a.example/", "about:blank": ""} {
		c.send(`{"id":1,"method":"Target.createTarget","params":{"background":true,"url":"` + sent + `"}}`)
		p := <-pages
		if p.id != "T" || p.url != want {
			t.Errorf("%s: opened %s at %q", sent, p.id, p.url)
		}
		if got := last(f, "Target.createTarget"); got.param("url") != "about:blank" || got.param("background") != "true" {
			t.Errorf("Chrome got %s", got.Params)
		}
		p.answered(true)
		if got := c.recv(); got.ID == nil || string(got.Result) != `{"targetId":"T"}` {
			t.Errorf("the client got %+v", got)
		}
	}
	c.send(`{"id":3,"method":"Target.createTarget","params":{"url":"http://a.example/"}}`)
	(<-pages).answered(false)
	if got := c.recv(); got.Error == nil || !strings.Contains(got.Error.Message, "in time") || got.Result != nil {
		t.Errorf("for a page that was not ready in time the client got %+v", got)
	}
	// The client wants the tab's ID. The page in the tab is set up all the same.
	for _, wanted := range []string{"TAB", ""} {
		if wanted != "" {
			f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"OTHER","type":"tab"}}`)
			f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"TAB","type":"tab"}}`)
			f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"T","type":"page","url":"about:blank"}}`)
		} else {
			f.emit("", "Target.targetDestroyed", `{"targetId":"TAB"}`)
		}
		c.send(`{"id":2,"method":"Target.createTarget","params":{"url":"http://b.example/","forTab":true}}`)
		(<-pages).answered(true)
		switch got := c.recv(); {
		case wanted != "" && string(got.Result) != `{"targetId":"TAB"}`, wanted == "" && got.Error == nil:
			t.Errorf("the client got %+v, want %q", got, wanted)
		}
	}
	if got := last(f, "Target.createTarget"); got.param("url") != "about:blank" || got.param("forTab") != "<nil>" {
		t.Errorf("Chrome got %s", got.Params)
	}
}

// With an OnResume function, a page that a client resumes waits for it. Other targets run
// at once.
func TestResumedPagesWait(t *testing.T) {
	m, f := start(t, Options{}, nil)
	waiting := make(chan func(), 1)
	m.Hooks.OnResume(func(id target.ID, let func()) {
		if id != "P" {
			t.Errorf("OnResume was called for %s", id)
		}
		waiting <- let
	})
	f.emit("", "Target.targetCreated", `{"targetInfo":{"targetId":"P","type":"page","url":"http://a.example/"}}`)
	c := connect(t, m, ServeOptions{})
	c.send(`{"id":1,"method":"Target.attachToTarget","params":{"targetId":"P","flatten":true}}`)
	var at struct{ SessionID string }
	for got := c.recv(); ; got = c.recv() {
		if got.ID != nil {
			if err := json.Unmarshal(got.Result, &at); err != nil || at.SessionID == "" {
				t.Fatalf("attached: %s, %v", got.Result, err)
			}
			break
		}
	}
	c.send(`{"id":2,"sessionId":"` + at.SessionID + `","method":"Runtime.runIfWaitingForDebugger"}`)
	let := <-waiting
	// Answers arrive in Chrome's order, so the page's answer would be here before this one.
	if got := c.call(3, "", "Runtime.runIfWaitingForDebugger", `{}`); got.Error != nil {
		t.Errorf("the browser: %+v", got)
	}
	if got := last(f, "Runtime.runIfWaitingForDebugger"); got.Session == at.SessionID {
		t.Error("Chrome got the command to run the page too early")
	}
	let()
	if got := c.recv(); got.ID == nil || *got.ID != 2 || got.Error != nil {
		t.Errorf("the client got %+v", got)
	}
}

// last returns the last message of a method that Chrome got.
func last(f *fake, method string) message {
	got := f.wait(1, func(m message) bool { return m.Method == method })
	return got[len(got)-1]
}
