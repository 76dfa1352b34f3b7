package mux

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

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
// Commands that delete the item of a page that they name are allowed, as a page's script can do
// the same. Cookies are checked one by one; see checkCookies.
var clears = map[string]bool{
	"Storage.clearCookies": true, "Network.clearBrowserCookies": true,
	"Storage.clearDataForOrigin": true, "Storage.clearDataForStorageKey": true, "Storage.clearSharedStorageEntries": true,
	"Storage.deleteStorageBucket": true, "Storage.runBounceTrackingMitigations": true,
	"DOMStorage.clear": true, "IndexedDB.deleteDatabase": true, "IndexedDB.clearObjectStore": true, "IndexedDB.deleteObjectStoreEntries": true, "CacheStorage.deleteCache": true,
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
	Name   string `json:"name"`
	Domain string `json:"domain"`
	URL    string `json:"url"`
	Path   string `json:"path"`
	Value  string `json:"value"`
	// Expires is in seconds; nil or negative: with the browser. Chrome deletes a cookie that is set
	// with 0 (Chromium 156), and Playwright's clearCookies({name}) does that.
	Expires *float64 `json:"expires"`
	Secure  bool     `json:"secure"`
}

// checkCookies lets a command set or delete cookies, unless that would change what a cookie of
// the profile says. It waits for the profile's cookies, and so do the client's later commands.
func (c *sharedCommand) checkCookies() bool {
	if c.shared.AllowWrites {
		return false
	}
	params := c.params.write()
	var set struct {
		Cookies []cookie `json:"cookies"`
	}
	var one cookie
	// A name that occurs twice is an error, because Chrome might use the other value.
	err := json.Unmarshal(params, &set)
	if err == nil {
		err = json.Unmarshal(params, &one)
	}
	if err != nil {
		c.fail(&cdpError{codeParams, "Invalid parameters: " + err.Error()})
		return true
	}
	deletes := c.method == "Network.deleteCookies"
	if set.Cookies == nil || deletes {
		set.Cookies = []cookie{one}
	}
	e, answered := c.ask("Storage.getCookies")
	if !answered {
		return true // the client or Chrome has ended
	}
	var now struct {
		Cookies []cookie `json:"cookies"`
	}
	if e.err != nil || json.Unmarshal(e.result, &now) != nil {
		c.fail(refusal(c.method, errors.New("the session's cookies could not be read")))
		return true
	}
	named := map[string][]cookie{}
	for _, is := range now.Cookies {
		named[is.Name] = append(named[is.Name], is)
	}
	for _, to := range set.Cookies {
		for _, is := range named[to.Name] {
			if to.changes(is, deletes) && !c.m.addedCookies.has(is) {
				c.fail(refusal(c.method, fmt.Errorf("it would replace the session's own cookie %q of %s, which others use%s", is.Name, is.Domain, advice)))
				return true
			}
		}
	}
	if !deletes {
		c.m.addedCookies.add(set.Cookies, named)
	}
	return false
}

// ask sends a command of the mux and waits for the answer, until the client has disconnected or
// Chrome has ended.
func (c *sharedCommand) ask(method string) (envelope, bool) {
	got, lost := make(chan envelope, 1), make(chan struct{})
	c.m.command("", method, "{}", func(e envelope) { got <- e }, func() { close(lost) })
	select {
	case e := <-got:
		return e, true
	case <-lost:
	case <-c.over:
	case <-c.ctx.Done():
	}
	return envelope{}, false
}

// plainURL matches the addresses whose host everybody reads alike.
var plainURL = regexp.MustCompile(`^(?i:https?)://([A-Za-z0-9.-]+)(?::[0-9]*)?(?:/|$)`)

var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// host returns the host of a cookie, in lower case, and whether subdomains get it too. For a host
// that Chrome could read in another way, it returns "".
func (c cookie) host() (host string, subdomains bool) {
	host = strings.ToLower(c.Domain)
	if host == "" {
		if url := plainURL.FindStringSubmatch(c.URL); url != nil {
			return strings.ToLower(url[1]), false
		}
		return "", false
	}
	if !plainHost.MatchString(host) {
		return "", false
	}
	return strings.CutPrefix(host, ".")
}

// changes reports whether c would change what sites get of the cookie that is there: replace,
// delete or shorten it, or come before it in requests.
func (c cookie) changes(is cookie, deletes bool) bool {
	if c.Name != is.Name {
		return false
	}
	if !deletes && c.Value == is.Value && !c.endsBefore(is) && (is.Secure || !c.Secure) {
		return false
	}
	host, sub := c.host()
	other, otherSub := is.host()
	switch {
	case host == "" || other == "" || host == other:
	case sub && strings.HasSuffix(other, "."+host), otherSub && strings.HasSuffix(host, "."+other):
	default:
		return false
	}
	if c.Path == "" && deletes {
		return true // of any path
	}
	return strings.HasPrefix(is.path(), c.path()) || strings.HasPrefix(c.path(), is.path())
}

// endsBefore reports whether c expires before the cookie that is there. Clients round the time to
// seconds.
func (c cookie) endsBefore(is cookie) bool {
	return c.Expires != nil && *c.Expires >= 0 && (is.Expires == nil || *is.Expires <= 0 || *c.Expires < *is.Expires-1)
}

// path returns the path of a cookie. Without one, Chrome takes / (Chromium 156).
func (c cookie) path() string {
	if c.Path == "" {
		return "/"
	}
	return c.Path
}

// addedCookies are cookies that were not in the profile when a client with shared contexts set
// them. Such clients may change them. Its methods are safe for concurrent use.
type addedCookies struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]struct{}
}

// maxAddedCookies bounds what addedCookies remembers. Later cookies cannot be changed.
const maxAddedCookies = 4096

// identity is the hash of a cookie. If a site has changed its value, it is another one.
func (c cookie) identity() [sha256.Size]byte {
	host, _ := c.host()
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", c.Name, host, c.path(), c.Value))
}

func (a *addedCookies) has(is cookie) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, added := a.all[is.identity()]
	return added
}

// add records cookies that a client sets, except those of the profile.
func (a *addedCookies) add(set []cookie, profile map[string][]cookie) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range set {
		host, _ := c.host()
		own := slices.ContainsFunc(profile[c.Name], func(is cookie) bool {
			_, added := a.all[is.identity()]
			return !added && is.identity() == c.identity()
		})
		if host == "" || own || len(a.all) >= maxAddedCookies {
			continue
		}
		if a.all == nil {
			a.all = map[[sha256.Size]byte]struct{}{}
		}
		a.all[c.identity()] = struct{}{}
	}
}
