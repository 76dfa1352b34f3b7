package mux

import (
	"bytes"
	"errors"
	"fmt"

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

// storageScript is in the script with which Playwright sets storageState in a page. The script
// first deletes all storage of the page's origin, and its call is restore (Playwright 1.65.1).
var storageScript, storageRestore = []byte("module.exports.StorageScript())"), []byte("script.restore(")

// refusesScript reports whether a command runs Playwright's script that sets storageState.
func (x *contextSet) refusesScript(method string, params []byte) bool {
	return !x.AllowWrites && (method == "Runtime.evaluate" || method == "Runtime.callFunctionOn") && bytes.Contains(params, storageScript) && bytes.Contains(params, storageRestore)
}

// thrown is the answer to a command whose script has thrown an error. Playwright shows such an
// error, and replaces one of CDP by another text.
func thrown(err error) envelope {
	text, _ := jsontext.AppendQuote(nil, "Error: Stasis does not allow this: "+err.Error())
	return envelope{result: fmt.Appendf(nil, `{"result":{"type":"undefined"},"exceptionDetails":{"exceptionId":1,"text":"Uncaught","lineNumber":0,"columnNumber":0,`+
		`"exception":{"type":"object","subtype":"error","className":"Error","description":%s}}}`, text)}
}

// checkClear refuses a command that deletes state of the profile, unless the client may.
func (c *sharedCommand) checkClear() bool {
	if c.contexts.AllowWrites {
		return false
	}
	c.refuse(errSharedClear)
	return true
}

// checkCookies lets a command set or delete cookies, unless that would change what a cookie of
// the profile says. It waits for the profile's cookies, and so do the client's later commands.
func (c *sharedCommand) checkCookies() bool {
	if c.contexts.AllowWrites {
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
	var now struct {
		Cookies []cookie `json:"cookies"`
	}
	result, err := c.m.ask(c.ctx, "", "Storage.getCookies")
	if err != nil || json.Unmarshal(result, &now) != nil {
		c.refuse(errors.New("the session's cookies could not be read"))
		return true
	}
	named := map[string][]cookie{}
	for _, is := range now.Cookies {
		named[is.Name] = append(named[is.Name], is)
	}
	for _, to := range set.Cookies {
		for _, is := range named[to.Name] {
			if to.changes(is, deletes) && !c.m.shared.cookies.has(is) {
				c.refuse(fmt.Errorf("it would replace the session's own cookie %q of %s, which others use%s", is.Name, is.Domain, advice))
				return true
			}
		}
	}
	if !deletes {
		c.m.shared.cookies.add(set.Cookies, named)
	}
	return false
}
