package mux

import (
	"fmt"
	"strings"
	"testing"
)

// What would damage the profile for other clients is refused, unless the client may.
func TestSharedWrites(t *testing.T) {
	handle := func(f *fake, m message) []byte {
		if m.Method != "Storage.getCookies" {
			return nil
		}
		f.answer(m, `{"cookies":[{"name":"session","value":"s","domain":".site.example","path":"/","expires":-1}]}`)
		return []byte{}
	}
	m, _ := start(t, Options{}, handle)
	script := `{"expression":"const script = new (module.exports.StorageScript())(1); return script.restore({})"}`
	for i, test := range []struct{ method, params, refused string }{
		{"Storage.clearCookies", `{}`, "log others out"},
		{"Network.clearBrowserCookies", `{}`, "log others out"},
		{"Storage.clearDataForOrigin", `{"origin":"https://site.example","storageTypes":"all"}`, "log others out"},
		{"Runtime.evaluate", script, "storageState"},
		{"Runtime.callFunctionOn", strings.Replace(script, "expression", "functionDeclaration", 1), "storageState"},
		{"Runtime.evaluate", strings.Replace(script, "restore", "collect", 1), ""},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://site.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","url":"https://site.example:8080/"}]}`, ""},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://else.example/"}]}`, ""},
		{"Storage.setCookies", `{"cookies":[{"name":"theme","value":"dark","domain":"site.example","path":"/"}]}`, ""},
		{"Network.setCookie", `{"name":"session","value":"other","domain":"site.example"}`, `"session"`},
		// Chrome reads all these hosts as site.example (Chromium 156).
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://user:p@site.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://site.example?x"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https:\\\\site.example\\"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https:site.example"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://s%69te.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","domain":"s%69te.example"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","url":"https://app.site.example/"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"other","domain":".site.example","path":"/app"}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","domain":".site.example","expires":1}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","domain":".site.example","expires":0}]}`, `"session"`},
		{"Storage.setCookies", `{"cookies":[{"name":"session","value":"s","domain":".site.example","expires":-1}]}`, ""},
		{"Storage.setCookies", `{"cookies":[{"name":"x","name":"session","value":"other","domain":".site.example"}]}`, "duplicate"},
		{"Network.deleteCookies", `{"name":"session","url":"https://site.example/"}`, `"session"`},
		{"Network.deleteCookies", `{"name":"theme","url":"https://site.example/"}`, ""},
		{"Storage.runBounceTrackingMitigations", `{}`, "log others out"},
		{"Storage.clearCookies", `{"x":1,"x":2}`, "duplicate"},
	} {
		for _, allow := range []bool{false, true} {
			c := connect(t, m, ServeOptions{Shared: &SharedContexts{AllowWrites: allow}})
			got := c.call(int64(i), "", test.method, test.params)
			if thrown := string(got.Result); strings.Contains(thrown, "exceptionDetails") {
				got.Error = &struct {
					Code    int
					Message string
				}{Message: thrown}
			}
			switch refused := test.refused != "" && !allow; {
			case refused && (got.Error == nil || !strings.Contains(got.Error.Message, test.refused)):
				t.Errorf("%s %s: %+v, want an error with %s", test.method, test.params, got, test.refused)
			case !refused && test.refused != "duplicate" && got.Error != nil:
				t.Errorf("%s %s, allowed %t: %+v", test.method, test.params, allow, got.Error)
			}
			close(c.in)
		}
	}
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{AllowWrites: true}})
	if got := c.call(1, "", "Target.createBrowserContext", `{"proxyServer":"http://127.0.0.1:1"}`); got.Error == nil || !strings.Contains(got.Error.Message, "one proxy") {
		t.Errorf("a context with a proxy: %+v", got)
	}
}

// A cookie that was not in the environment can be changed by clients, until a site changes it.
func TestSharedCookiesOfClients(t *testing.T) {
	jar := make(chan string, 1)
	now := `{"cookies":[]}`
	m, _ := start(t, Options{}, func(f *fake, m message) []byte {
		if m.Method != "Storage.getCookies" {
			return nil
		}
		select {
		case now = <-jar:
		default:
		}
		f.answer(m, now)
		return []byte{}
	})
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	for i, test := range []struct {
		jar, value string
		refused    bool
	}{
		{`{"cookies":[]}`, "oat", false},
		{`{"cookies":[{"name":"milk","value":"oat","domain":"site.example","path":"/"}]}`, "soy", false},
		{`{"cookies":[{"name":"milk","value":"cow","domain":"site.example","path":"/"}]}`, "soy", true},
	} {
		jar <- test.jar
		got := c.call(int64(i), "", "Storage.setCookies", fmt.Sprintf(`{"cookies":[{"name":"milk","value":%q,"url":"https://site.example/"}]}`, test.value))
		if (got.Error != nil) != test.refused {
			t.Errorf("%d: %+v", i, got.Error)
		}
	}
}

// Commands that set cookies reach Chrome in their order, and wait for one look at the jar each.
func TestSharedCookiesWait(t *testing.T) {
	asked := make(chan message, 10)
	m, f := start(t, Options{}, func(_ *fake, m message) []byte {
		if m.Method != "Storage.getCookies" {
			return nil
		}
		asked <- m
		return []byte{}
	})
	c := connect(t, m, ServeOptions{Shared: &SharedContexts{}})
	c.ask(1, "Storage.setCookies", `{"cookies":[{"name":"a","value":"1","url":"https://site.example/"}]}`)
	go c.ask(2, "Page.navigate", `{"url":"https://site.example/"}`)
	first := <-asked
	f.answer(first, `{"cookies":[]}`)
	f.wait(1, method("Page.navigate"))
	f.mu.Lock()
	defer f.mu.Unlock()
	order := ""
	for _, m := range f.got {
		order += m.Method + " "
	}
	if !strings.Contains(order, "Storage.getCookies Storage.setCookies Page.navigate") {
		t.Errorf("Chrome got %s", order)
	}
}
