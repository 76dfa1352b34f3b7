package mux

import (
	"fmt"

	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// notReady is the error for a client whose page was not set up in time.
var notReady = fmt.Appendf(nil, `{"code":%d,"message":"The page did not become ready in time"}`, codeRefused)

// resumeHook returns OnResume's function if the command lets a page run, else nil.
func (c *client) resumeHook(s *session, method string) ResumeHook {
	if method != "Runtime.runIfWaitingForDebugger" {
		return nil
	}
	c.m.mu.Lock()
	kind := c.m.targets.all[s.target].Type
	c.m.mu.Unlock()
	if kind != "page" {
		return nil
	}
	return c.m.Hooks.resume()
}

// prepareCreate prepares a client's Target.createTarget. It returns the parameters to
// send and a function for Chrome's answer. If the function is nil, the command is
// forwarded like any other. With forTab, Chrome would answer with the tab's ID instead of
// the page's, so the mux could not know when the page is set up. The mux removes forTab
// and puts the tab's ID into the answer. chromedriver needs it.
func (c *client) prepareCreate(method string, params []byte) ([]byte, func(e envelope, answer func(envelope)), *cdpError) {
	opened := c.m.Hooks.create()
	if opened == nil || method != "Target.createTarget" {
		return params, nil, nil
	}
	var (
		all    fields
		url    string
		forTab bool
	)
	if all.read(params) != nil || all.get("url", &url) != nil || all.get("forTab", &forTab) != nil {
		return params, nil, nil // Chrome reports what is wrong with it
	}
	delete(all, "forTab")
	if url == "about:blank" {
		url = ""
	}
	all["url"] = jsontext.Value(`"about:blank"`)
	return all.write(), func(e envelope, answer func(envelope)) {
		var created struct {
			TargetID target.ID `json:"targetId"`
		}
		if e.err != nil || json.Unmarshal(e.result, &created) != nil || created.TargetID == "" {
			answer(e)
			return
		}
		opened(created.TargetID, url, func(ready bool) {
			shown := string(created.TargetID)
			if forTab {
				c.m.mu.Lock()
				shown = c.m.targets.tabOf(shown)
				c.m.mu.Unlock()
			}
			if e.result = fmt.Appendf(nil, `{"targetId":%q}`, shown); !ready || shown == "" {
				e.result, e.err = nil, notReady
			}
			answer(e)
		})
	}, nil
}
