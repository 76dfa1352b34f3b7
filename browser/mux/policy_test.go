package mux

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// oneExtension stands for a session with one extension.
type oneExtension struct{}

func (oneExtension) owns(id string) bool { return id == "own" }
func (oneExtension) ids() []string       { return []string{"own"} }

// viewer is Chrome's own PDF viewer.
const viewer = "mhjfbmdgcfjbbpaeojofohoefgiehjai"

func TestURLs(t *testing.T) {
	for url, allowed := range map[string]bool{
		"": true, "http://a/": true, "HTTPS://a": true, " https://a ": true, "about:blank": true, "ABOUT:BLANK#x": true,
		"about:srcdoc": true, "data:text/html,x": true, "blob:http://a/1": true, "javascript:1": true,
		"chrome-extension://own/x.html": true, "chrome-extension://own": true, "blob:chrome-extension://own/1": true, "blob:null/1": true,
		"chrome-extension://" + viewer + "/index.html": false, "chrome-extension:" + viewer: false, "chrome-extension:/own/x": false,
		"chrome-extension://own@" + viewer + "/x": false, `chrome-extension:\\` + viewer: false, "blob:chrome-extension://" + viewer + "/1": false,
		"blob:file:///1": false, "blob: file:///1": false, "blob:chrome://version/1": false, "view-source:http://a": true, "wss://a": true, "ht\ntp://a": true,
		"file:///etc/passwd": false, "FILE:///etc/passwd": false, " file:///x": false, "\tfi\nle:/\r/x": false, "\x00file:///x": false,
		"\x1ffile:///x": false, "view-source:file:///etc/passwd": false, "view-source: file:///x": false, "View-Source:\tFile:///x": false,
		"view-source:view-source:http://a": false, "view-source:chrome://version": false, "view-source:data:,x": false,
		"chrome://settings": false, "chrome-untrusted://x": false, "devtools://devtools/bundled/inspector.html": false,
		"about:version": false, "about:blankx": false, "about:": false, "filesystem:http://a/temporary/x": false, "chrome-search://x": false,
		"ftp://a": false, "mailto:x": false, "intent:x": false, "example.com": false, "/etc/passwd": false, "//etc/passwd": false,
		"C:/x": false, "file": false, "fi%6ce:///x": false, "isolated-app://x": false, "1http://a": false, "externalfile:x": false,
	} {
		if err := checkURL(url, oneExtension{}.owns); (err == nil) != allowed {
			t.Errorf("%q: %v, want allowed %v", url, err, allowed)
		}
	}
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"))
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "sub", "b.txt"))
	for link, to := range map[string]string{"out": "/etc/passwd", "in": "a.txt", "up": "../..", "dir": "/etc"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	p := &Policy{FilesDir: dir, IncomingDir: "/in"}
	const no = "refused"
	for _, c := range []struct{ method, params, want string }{
		{"Page.navigate", `{"url":"http://a/"}`, `{"url":"http://a/"}`},
		{"Page.navigate", `{"url":"file:///etc/passwd"}`, no},
		{"Page.navigate", `{"\u0075rl":"\u0066ile:///etc/passwd"}`, no},
		{"Page.navigate", `{"url":1}`, no},
		{"Page.navigate", `{"url":"http://a","url":"file:///x"}`, no},
		{"Target.createTarget", `{"url":"chrome://settings"}`, no},
		{"Network.loadNetworkResource", `{"url":"file:///etc/passwd"}`, no},
		{"Fetch.continueRequest", `{"requestId":"1"}`, `{"requestId":"1"}`},
		{"Fetch.continueRequest", `{"requestId":"1","url":"file:///x"}`, no},

		{"DOM.setFileInputFiles", `{"files":["a.txt"],"nodeId":1}`, `{"files":["` + dir + `/a.txt"],"nodeId":1}`},
		{"DOM.setFileInputFiles", `{"files":["sub/b.txt","` + dir + `/a.txt","in"]}`, `{"files":["` + dir + `/sub/b.txt","` + dir + `/a.txt","` + dir + `/in"]}`},
		{"DOM.setFileInputFiles", `{"files":[]}`, `{"files":[]}`},
		{"DOM.setFileInputFiles", `{"files":["/etc/passwd"]}`, no},
		{"DOM.setFileInputFiles", `{"files":["a.txt","../x"]}`, no},
		{"DOM.setFileInputFiles", `{"files":["` + dir + `/../x"]}`, no},
		{"DOM.setFileInputFiles", `{"files":["` + dir + `x/a.txt"]}`, `{"files":["` + dir + `/a.txt"]}`},
		{"DOM.setFileInputFiles", `{"files":["out"]}`, no},
		{"DOM.setFileInputFiles", `{"files":["dir/passwd"]}`, no},
		{"DOM.setFileInputFiles", `{"files":["up/x"]}`, no},
		{"DOM.setFileInputFiles", `{"files":["none"]}`, no},
		{"DOM.setFileInputFiles", `{"files":["sub"]}`, no},
		{"DOM.setFileInputFiles", `{"files":[""]}`, no},
		{"DOM.setFileInputFiles", `{"files":"/etc/passwd"}`, no},
		{"Input.dispatchDragEvent", `{"type":"drop","data":{"items":[],"files":["/etc/passwd"]}}`, no},
		{"Input.dispatchDragEvent", `{"data":{"files":["a.txt"],"items":[]},"type":"drop"}`, `{"data":{"files":["` + dir + `/a.txt"],"items":[]},"type":"drop"}`},
		{"Input.dispatchDragEvent", `{"data":{"items":[]}}`, `{"data":{"items":[]}}`},
		{"Input.dispatchDragEvent", `{"data":{"files":["a.txt"],"files":["/etc/passwd"]}}`, no},
		{"Input.dispatchDragEvent", `{"data":{"items":[{"mimeType":"text/uri-list","data":"# x\r\nhttp://a/\r\nfile:///etc/passwd"}]}}`, no},
		{"Input.dispatchDragEvent", `{"data":{"items":[{"mimeType":"text/html","data":"","baseURL":"file:///"}]}}`, no},
		{"Input.dispatchDragEvent", `{"data":{"items":[{"mimeType":"text/uri-list","data":"http://a/"}]}}`, `{"data":{"items":[{"mimeType":"text/uri-list","data":"http://a/"}]}}`},
		{"Page.addScriptToEvaluateOnNewDocument", `{"source":1}`, no},
		{"Page.reload", `{"ignoreCache":true}`, `{"ignoreCache":true}`},
		{"Browser.setDownloadBehavior", `{"behavior":"allow","downloadPath":"/etc"}`, `{"behavior":"allowAndName","downloadPath":"/in"}`},
		{"Browser.setDownloadBehavior", `{"behavior":"default","eventsEnabled":true}`, `{"behavior":"allowAndName","downloadPath":"/in","eventsEnabled":true}`},
		{"Browser.setDownloadBehavior", `{"behavior":"deny","downloadPath":"/etc"}`, `{"behavior":"deny","downloadPath":"/in"}`},
		{"Page.setDownloadBehavior", `{"behavior":"deny"}`, `{"behavior":"deny","downloadPath":"/in"}`},
		{"Page.setDownloadBehavior", `{"behavior":"allow","downloadPath":"/etc","browserContextId":"other","eventsEnabled":true}`, `{"behavior":"allowAndName","downloadPath":"/in"}`},
		{"Tracing.start", `{"categories":"x"}`, `{"categories":"x","tracingBackend":"chrome"}`},
		{"Tracing.start", `{"tracingBackend":"system"}`, no},
		{"Tracing.start", `{"perfettoConfig":"AA=="}`, no},

		{"Target.attachToTarget", `{"targetId":"T","flatten":true}`, `{"targetId":"T","flatten":true}`},
		{"Target.attachToTarget", `{"targetId":"T"}`, no},
		{"Target.attachToTarget", `{"targetId":"hidden","flatten":true}`, no},
		{"Target.closeTarget", `{"targetId":"hidden"}`, no},
		{"Target.setAutoAttach", `{"autoAttach":true,"waitForDebuggerOnStart":false}`, no},
		{"Target.setAutoAttach", `{"autoAttach":false,"waitForDebuggerOnStart":false}`, `{"autoAttach":false,"waitForDebuggerOnStart":false}`},
		{"Target.createBrowserContext", `{"originsWithUniversalNetworkAccess":["http://a"]}`, no},
		{"Target.createBrowserContext", `{"proxyServer":"http://p"}`, `{"proxyServer":"http://p"}`},
		{"Input.dispatchKeyEvent", `{"key":"h","nativeVirtualKeyCode":72}`, `{"key":"h"}`},

		{"Target.exposeDevToolsProtocol", `{}`, no}, {"Target.sendMessageToTarget", `{}`, no}, {"Target.openDevTools", `{}`, no},
		{"Target.setRemoteLocations", `{}`, no}, {"Browser.crash", `{}`, no}, {"Browser.crashGpuProcess", `{}`, no},
		{"Browser.executeBrowserCommand", `{}`, no}, {"Browser.getBrowserCommandLine", `{}`, no}, {"SystemInfo.getInfo", `{}`, no},
		{"Extensions.loadUnpacked", `{}`, no}, {"Extensions.uninstall", `{}`, no}, {"Extensions.getStorageItems", `{}`, no},
		{"PWA.install", `{}`, no}, {"Tethering.bind", `{}`, no}, {"Browser.somethingNew", `{}`, no}, {"New.domain", `{}`, no}, {"plain", `{}`, no},
		{"Security.setIgnoreCertificateErrors", `{"ignore":true}`, `{"ignore":true}`}, {"Memory.getDOMCounters", ``, ``}, {"IO.read", `{}`, `{}`},
	} {
		var params []byte
		if c.params != "" {
			params = []byte(c.params)
		}
		got, bad := p.apply(&call{method: c.method, visible: func(id string) bool { return id != "hidden" }, extensions: oneExtension{}}, params)
		switch {
		case c.want == no && bad == nil:
			t.Errorf("%s %s was allowed as %s", c.method, c.params, got)
		case c.want != no && bad != nil:
			t.Errorf("%s %s: %v", c.method, c.params, bad)
		case c.want != no && string(got) != c.want:
			t.Errorf("%s %s became %s, want %s", c.method, c.params, got, c.want)
		case bad != nil && strings.Contains(bad.message, dir):
			t.Errorf("the error of %s contains a path of the machine: %s", c.method, bad.message)
		}
	}
	if _, bad := new(Policy).apply(&call{method: "DOM.setFileInputFiles"}, []byte(`{"files":["a"]}`)); bad == nil {
		t.Error("a session without a folder accepts files")
	}
	for _, e := range table {
		if e.rule.why == "" {
			t.Errorf("a rule has no reason: %+v", e)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reviewed lists the reviewed commands with a path, file, URL or directory in their
// parameters that are allowed, and why.
var reviewed = map[string]string{
	"Browser.addPrivacySandboxEnrollmentOverride": "names a site, fetches nothing",
	"CacheStorage.requestCachedResponse":          "a key of a page's cache",
	"CacheStorage.requestEntries":                 "a filter on such keys",
	"DOM.pushNodeByPathToFrontend":                "a path in the DOM tree",
	"DOMDebugger.removeXHRBreakpoint":             "a breakpoint on a page's requests",
	"DOMDebugger.setXHRBreakpoint":                "the same",
	"Debugger.setBreakpointByUrl":                 "names a script of the page",
	"FedCm.openUrl":                               "opens an address of the site's own identity provider",
	"Fetch.enable":                                "patterns that requests are compared with",
	"FileSystem.getDirectory":                     "a path in a page's own bucket file system",
	"Network.deleteCookies":                       "a cookie's scope",
	"Network.emulateNetworkConditionsByRule":      "patterns that requests are compared with",
	"Network.enable":                              "a flag about direct sockets",
	"Network.getCookies":                          "cookies' scopes",
	"Network.setBlockedURLs":                      "patterns that requests are compared with",
	"Network.setCookie":                           "a cookie's scope",
	"Network.setCookies":                          "cookies' scopes",
	"Page.addCompilationCache":                    "a key of V8's cache",
	"Page.deleteCookie":                           "a cookie's scope",
	"Page.enable":                                 "a flag about file choosers",
	"Page.getResourceContent":                     "a resource that the page has loaded",
	"Page.produceCompilationCache":                "a key of V8's cache",
	"Page.searchInResource":                       "a resource that the page has loaded",
	"Runtime.compileScript":                       "a name for a script",
	"ServiceWorker.skipWaiting":                   "a registered scope",
	"ServiceWorker.startWorker":                   "a registered scope",
	"ServiceWorker.unregister":                    "a registered scope",
	"ServiceWorker.updateRegistration":            "a registered scope",
	"Storage.setCookies":                          "cookies' scopes",
}

var suspicious = regexp.MustCompile(`(?i)path|file|url|dir`)

// A method has one rule: of two lines, the later one would silently replace the first.
func TestOneRuleForAMethod(t *testing.T) {
	lines := map[string]int{}
	for _, e := range table {
		for _, method := range strings.Fields(e.methods) {
			if lines[method]++; lines[method] == 2 {
				t.Errorf("%s has two lines; put a further condition into the function of its rule", method)
			}
		}
	}
}

// Every command of the protocol that contains files or addresses has its own rule, is
// refused, or was reviewed. testdata/commands.txt is the protocol of Chrome 156 from its
// /json/protocol, including deprecated commands. When Chrome is upgraded, regenerate the
// file; new commands then fail here.
func TestEveryCommandWasLookedAt(t *testing.T) {
	f, err := os.Open("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	n, used := 0, map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		method, params, _ := strings.Cut(lines.Text(), " ")
		n++
		r, known := ruleFor(method)
		if !known {
			t.Errorf("no rule covers %s", method)
		}
		used[method] = true
		if known && !r.refused && r.act == nil && reviewed[method] == "" && named(params) {
			t.Errorf("%s (%s) has no separate rule and was not reviewed", method, params)
		}
	}
	if err := lines.Err(); err != nil || n < 600 {
		t.Fatalf("%d commands read: %v", n, err)
	}
	for method := range reviewed {
		if !used[method] {
			t.Errorf("%s was reviewed but is not in the protocol", method)
		}
	}
	for method := range rules {
		if !strings.HasSuffix(method, ".*") && !used[method] {
			t.Errorf("%s has a rule but is not in the protocol", method)
		}
	}
}

func named(params string) bool {
	for _, p := range strings.Fields(params) {
		if suspicious.MatchString(p[strings.LastIndexByte(p, '.')+1:]) {
			return true
		}
	}
	return false
}
