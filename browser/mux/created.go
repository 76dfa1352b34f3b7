package mux

import (
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/target"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Opened takes a page that a client has created (Target.createTarget). It is
// to be sent to the address, where there is one. answered is called once: with true
// when the client may have it, with false when it did not get ready and goes; the
// client's command then fails. Opened must not wait.
type Opened func(id target.ID, url string, answered func(ready bool))

// notReady is the answer to a client whose page did not get ready.
var notReady = fmt.Appendf(nil, `{"code":%d,"message":"The page did not become ready in time"}`, codeRefused)

// OnCreate makes every page that a client creates from now on a blank one and
// hands it to f: Chrome does not hold a page that is created with an address
// for anybody, and its first request would go as it is.
func (m *Mux) OnCreate(f Opened) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened = f
}

// Resumed takes a page that a client lets run (Runtime.runIfWaitingForDebugger).
// It calls let once the page may run, and must not wait.
type Resumed func(id target.ID, let func())

// OnResume has f decide when a page runs that a client lets go: a page that
// another one has opened waits once for everybody, and Chrome takes the first
// word for it, whoever else is still setting it up.
func (m *Mux) OnResume(f Resumed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.resumed = f
}

// resuming is OnResume's function where a command lets a page run, else nil.
func (m *Mux) resuming(s *session, method string) Resumed {
	if method != "Runtime.runIfWaitingForDebugger" {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.targets.all[s.target].Type != "page" {
		return nil
	}
	return m.resumed
}

// creation says what becomes of a client's Target.createTarget: the parameters
// to send, and what to do with Chrome's answer; with nil for that the command
// goes as any other. A tab that is answered with its own ID in place of its
// page's is refused: nobody could tell when that page is set up.
func (c *client) creation(method string, params []byte) ([]byte, func(e envelope, answer func(envelope)), *cdpError) {
	c.m.mu.Lock()
	opened := c.m.opened
	c.m.mu.Unlock()
	if opened == nil || method != "Target.createTarget" {
		return params, nil, nil
	}
	var (
		all    fields
		url    string
		forTab bool
	)
	if all.read(params) != nil || all.get("url", &url) != nil || all.get("forTab", &forTab) != nil {
		return params, nil, nil // Chrome says what is wrong with it
	}
	if forTab {
		return nil, nil, refusal(method, errors.New("forTab must be false where the session sets something on its pages"))
	}
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
			if !ready {
				e.result, e.err = nil, notReady
			}
			answer(e)
		})
	}, nil
}
