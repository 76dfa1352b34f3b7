package mux

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// advice ends the reason of a refusal.
const advice = "; create the session with shared_writes: allow to permit it"

var (
	errSharedProxy = errors.New("the contexts of this connection share the session's profile, which has one proxy; set it when the session is created")
	errSharedClear = errors.New("the contexts of this connection share the session's profile, and it would log others out" + advice)
	errSharedState = errors.New("storageState would delete the session's own storage of these sites; leave it out, because the contexts of this connection are already logged in" + advice)
)

// clears are the commands that delete state of the profile, which other clients rely on.
// Commands that delete what they name, such as one cookie, are allowed.
var clears = map[string]bool{
	"Storage.clearCookies": true, "Network.clearBrowserCookies": true,
	"Storage.clearDataForOrigin": true, "Storage.clearDataForStorageKey": true, "Storage.clearSharedStorageEntries": true,
	"Storage.deleteStorageBucket": true,
	"DOMStorage.clear":            true, "IndexedDB.deleteDatabase": true, "IndexedDB.clearObjectStore": true, "CacheStorage.deleteCache": true,
	"ServiceWorker.unregister": true, "FileSystem.clear": true,
}

// storageScript is in the script with which Playwright sets storageState in a page. The script
// first deletes all storage of the page's origin, and its call is restore (Playwright 1.65.1).
var storageScript, storageRestore = []byte("module.exports.StorageScript())"), []byte("script.restore(")

// refuses returns the error for a command that must not run, or nil.
func (s *sharedContexts) refuses(c *sharedCommand) *cdpError {
	proxy := ""
	switch {
	case c.method == "Target.createBrowserContext" && c.params.get("proxyServer", &proxy) == nil && proxy != "":
		return refusal(c.method, errSharedProxy)
	case clears[c.method] && !s.AllowWrites:
		return refusal(c.method, errSharedClear)
	}
	return nil
}

// refusesScript reports whether a command runs Playwright's script that sets storageState.
func (s *sharedContexts) refusesScript(method string, params []byte) bool {
	return !s.AllowWrites && (method == "Runtime.evaluate" || method == "Runtime.callFunctionOn") && bytes.Contains(params, storageScript) && bytes.Contains(params, storageRestore)
}

// thrown is the answer to a command whose script has thrown an error. Playwright shows such an
// error, and replaces one of CDP by another text.
func thrown(err error) envelope {
	text, _ := jsontext.AppendQuote(nil, "Error: Stasis does not allow this: "+err.Error())
	return envelope{result: fmt.Appendf(nil, `{"result":{"type":"undefined"},"exceptionDetails":{"exceptionId":1,"text":"Uncaught","lineNumber":0,"columnNumber":0,`+
		`"exception":{"type":"object","subtype":"error","className":"Error","description":%s}}}`, text)}
}

// cookie is what identifies a cookie, and its value.
type cookie struct {
	Name         string         `json:"name"`
	Domain       string         `json:"domain"`
	URL          string         `json:"url"`
	Path         string         `json:"path"`
	Value        string         `json:"value"`
	PartitionKey jsontext.Value `json:"partitionKey"`
}

// checkCookies sends a command that sets cookies, unless it would replace a cookie of the
// profile by another value.
func (c *sharedCommand) checkCookies() bool {
	if c.shared.AllowWrites {
		return false
	}
	set := struct {
		Cookies []cookie `json:"cookies"`
		cookie
	}{}
	_ = json.Unmarshal(c.params.write(), &set) // Chrome reports what is wrong with it
	if set.Cookies == nil {
		set.Cookies = []cookie{set.cookie}
	}
	id, asked := c.e.id, string(c.e.session)
	send := func() {
		answer := func(r envelope) { c.push(reply(id, r, asked)) }
		n, err := c.m.requests.register(&pending{peer: &c.peer, session: c.session.id, method: c.method, answer: answer})
		if err == nil {
			c.lane.post(request(n, c.session.id, []byte(c.method), c.params.write()))
		}
	}
	c.m.command("", "Storage.getCookies", "{}", func(e envelope) {
		var now struct {
			Cookies []cookie `json:"cookies"`
		}
		_ = json.Unmarshal(e.result, &now) // an error has none
		for _, is := range now.Cookies {
			for _, to := range set.Cookies {
				if to.replaces(is) && to.Value != is.Value {
					c.fail(refusal(c.method, fmt.Errorf("it would replace the session's own cookie %q of %s, which others use%s", is.Name, is.Domain, advice)))
					return
				}
			}
		}
		send()
	}, nil)
	return true
}

// replaces reports whether c would replace the cookie that is there.
func (c cookie) replaces(is cookie) bool {
	if c.Name != is.Name {
		return false
	}
	host, path := c.Domain, c.Path
	if c.URL != "" {
		_, rest, _ := strings.Cut(c.URL, "://")
		rest, _, _ = strings.Cut(rest, "/")
		if host == "" {
			host, _, _ = strings.Cut(rest, ":")
		}
	}
	if path == "" {
		path = "/"
	}
	return strings.EqualFold(strings.TrimPrefix(host, "."), strings.TrimPrefix(is.Domain, ".")) && path == is.Path
}
