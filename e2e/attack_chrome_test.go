package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// chromeItself sends commands that change, end or leave Chrome.
func chromeItself(t *testing.T, p *attackSetup) {
	extension := filepath.Join(p.ownDir, "files", "ext")
	for _, c := range []struct {
		method string
		params obj
	}{
		{"Browser.crash", nil}, {"Browser.crashGpuProcess", nil},
		{"Extensions.loadUnpacked", obj{"path": extension}}, {"Extensions.getExtensions", nil}, {"Extensions.triggerAction", nil},
		{"Extensions.getStorageItems", obj{"id": "x", "storageArea": "local"}}, {"Extensions.uninstall", obj{"id": "x"}},
		{"Browser.getBrowserCommandLine", nil}, {"SystemInfo.getInfo", nil}, {"SystemInfo.getProcessInfo", nil},
		{"Browser.executeBrowserCommand", obj{"commandId": "openTabSearch"}}, {"PWA.install", obj{"manifestId": p.site.URL}},
		{"Tethering.bind", obj{"port": 9999}}, {"Target.exposeDevToolsProtocol", obj{"targetId": p.target}},
		{"Target.setRemoteLocations", obj{"locations": []obj{{"host": "127.0.0.1", "port": 9222}}}},
		{"Target.openDevTools", obj{"targetId": p.target}}, {"Cast.enable", nil},
		{"Target.createBrowserContext", obj{"originsWithUniversalNetworkAccess": []string{"*"}}},
		{"Nonsense.doIt", nil},
	} {
		if c.params == nil {
			c.params = obj{}
		}
		for _, session := range []string{"", p.page} {
			p.w.refused(session, c.method, c.params)
		}
	}
	// Chrome's own keyboard shortcuts open nothing.
	before := len(p.w.targets())
	for _, key := range []obj{
		{"type": "rawKeyDown", "key": "F12", "code": "F12", "windowsVirtualKeyCode": 123, "nativeVirtualKeyCode": 123},
		{"type": "rawKeyDown", "key": "I", "code": "KeyI", "modifiers": 10, "windowsVirtualKeyCode": 73, "nativeVirtualKeyCode": 31},
		{"type": "rawKeyDown", "key": "Q", "code": "KeyQ", "modifiers": 10, "windowsVirtualKeyCode": 81, "nativeVirtualKeyCode": 24},
	} {
		p.w.call(p.page, "Input.dispatchKeyEvent", key, nil)
	}
	if after := p.w.targets(); len(after) > before {
		t.Errorf("a keyboard shortcut opened a target: %+v", after)
	}
	p.noFileIsOpen(t)
	// Browser.close only ends this client's connection.
	leaving := dial(t, p.own.CDP)
	leaving.leave("Browser.close")
	leaving.ended()
	if s := look(t, p.d, p.own.ID); s.Status != "running" {
		t.Errorf("after Browser.close the session is %s", s.Status)
	}
}

// othersTargets checks that targets of another session and of Chrome's interface cannot
// be seen or used.
func othersTargets(t *testing.T, p *attackSetup) {
	for _, info := range p.w.targets() {
		if info.ID == p.otherTab || info.Type == "browser_ui" || info.Type == "browser" && info.URL != "" {
			t.Errorf("the attacker sees %+v", info)
		}
	}
	for _, c := range []struct {
		method string
		params obj
	}{
		{"Target.attachToTarget", obj{"targetId": p.otherTab, "flatten": true}}, {"Target.getTargetInfo", obj{"targetId": p.otherTab}},
		{"Target.activateTarget", obj{"targetId": p.otherTab}}, {"Target.closeTarget", obj{"targetId": p.otherTab}},
		{"Browser.getWindowForTarget", obj{"targetId": p.otherTab}},
	} {
		if r := p.w.try("", c.method, c.params); r.Error == nil {
			t.Errorf("%s of another's target: %s", c.method, r.Result)
		}
	}
	socket := func(s liveSession, target string) string {
		return strings.Replace(s.CDP, "/cdp?", "/cdp/page/"+target+"?", 1)
	}
	ok := dial(t, socket(p.own, p.target))
	if got := ok.eval("", "1+1"); got != "2" {
		t.Errorf("the socket of the own page gives %s, want 2", got)
	}
	ghost := dial(t, socket(p.own, p.otherTab))
	if code := ghost.ended(); code == 1000 {
		t.Errorf("the socket of another's page closed with %d", code)
	}
}

// messagesPastThePolicy checks that messages in other forms do not bypass the policy.
func messagesPastThePolicy(t *testing.T, p *attackSetup) {
	p.w.refused("", "Target.attachToTarget", obj{"targetId": p.target})
	p.w.refused("", "Target.attachToTarget", obj{"targetId": p.target, "flatten": false})
	p.w.refused(p.page, "Target.setAutoAttach", obj{"autoAttach": true, "waitForDebuggerOnStart": false})
	p.w.refused("", "Target.sendMessageToTarget", obj{"targetId": p.target, "message": `{"id":1,"method":"Page.navigate","params":{"url":"file:///etc/passwd"}}`})
	for _, raw := range []string{
		`{"id":9001,"method":"Page.navigate","params":{"url":"about:blank","url":"file:///etc/passwd"},"sessionId":"` + p.page + `"}`,
		`{"id":9002,"method":"Runtime.enable","method":"Browser.crash"}`,
		`{"id":9003,"meth\u006fd":"Browser.crash","method":"Browser.getVersion"}`,
		`{"id":9004,"method":"Browser.cr\u0061sh"}`,
		`{"id":9005,"method":"Browser.getVersion"}` + "\x00" + `{"id":9006,"method":"Browser.crash"}`,
		`[{"id":9007,"method":"Browser.crash"}]`,
		`not json`, ``, `{"id":9008}`, `{"method":"Browser.crash"}`, strings.Repeat("[", 200_000),
	} {
		p.w.send([]byte(raw))
	}
	var v struct{ Product string }
	p.w.call("", "Browser.getVersion", nil, &v)
	// A client cannot use another client's CDP session.
	second := dial(t, p.own.CDP)
	if r := second.try(p.page, "Runtime.evaluate", obj{"expression": "1"}); r.Error == nil {
		t.Error("a client used another client's CDP session")
	}
	if got := p.w.eval(p.page, `location.origin`); got != p.site.URL {
		t.Errorf("the page navigated to %s", got)
	}
}
