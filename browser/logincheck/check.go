// Package logincheck checks whether a user is logged in at a site. It opens an address in
// a hidden tab and tests conditions there.
package logincheck

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// checkPause is the interval between two tests of a check's conditions.
const checkPause = 50 * time.Millisecond

// Check is an address and the conditions there that prove a login. A zero condition is
// not set. All set conditions must hold at the same time.
type Check struct {
	URL string // http: or https:
	// Status is the status of the answer to URL itself: for a redirect to a login page it
	// is the redirect's 302, not the page's 200.
	Status         int64
	Selector       string // CSS: the document has a matching element
	AbsentSelector string // CSS: the document has no matching element
	Text           string // the page's visible text contains it
	Cookie         string // name of a cookie that would be sent to URL
	Timeout        time.Duration
}

// These are the kinds of conditions.
const (
	ConditionStatus   = "status"
	ConditionSelector = "selector"
	ConditionAbsent   = "absent_selector"
	ConditionText     = "text"
	ConditionCookie   = "cookie"
)

// Condition is one condition of a check, and whether it held at the end.
type Condition struct {
	Kind string `json:"kind"`
	Held bool   `json:"held"`
}

// Outcome is the result of a check.
type Outcome struct {
	LoggedIn   bool
	URL        string // final address of the tab, without query and fragment; "" if no page loaded
	Status     int64  // status of the answer to the check's URL; 0 without an answer
	Conditions []Condition
	Problem    string // why the page could not be judged; "" if it was judged
}

// Judge opens the address and tests the conditions until they hold, one of them can no
// longer hold, or ctx ends.
func (t *Tab) Judge(ctx context.Context, c Check) Outcome {
	nav, err := cdp.Call(ctx, t.session, page.Navigate, page.NavigateParams{URL: c.URL})
	var o Outcome
	var idle idleDetector
	again := time.NewTicker(checkPause)
	defer again.Stop()
	for err == nil {
		seen := t.look(ctx, c)
		if ctx.Err() != nil {
			break // an interrupted look does not count
		}
		status, failed := t.firstAnswer()
		o = c.evaluate(status, seen)
		o.Problem = seen.Problem
		open, asked := t.openRequests()
		final := idle.look(seen, open, asked) || o.LoggedIn || o.Problem != "" || c.Status != 0 && status != 0 && status != c.Status
		switch {
		case nav.ErrorText != "" && status == 0 && failed:
			o.Problem = "the page could not be opened: " + nav.ErrorText
			return o
		case nav.ErrorText != "" && status != 0: // an answer without a document
			return o
		case nav.ErrorText == "" && seen.shown && final:
			return o
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	if o.Conditions == nil {
		status, _ := t.firstAnswer()
		o = c.evaluate(status, observation{})
	}
	if o.URL == "" {
		o.LoggedIn, o.Problem = false, "the page did not answer in time"
	}
	return o
}

// evaluate compares what was seen with the conditions.
func (c Check) evaluate(status int64, seen observation) Outcome {
	o := Outcome{LoggedIn: true, URL: seen.URL, Status: status, Conditions: []Condition{}}
	for _, k := range []struct {
		kind        string
		given, held bool
	}{
		{ConditionStatus, c.Status != 0, status == c.Status},
		{ConditionSelector, c.Selector != "", seen.Selector},
		{ConditionAbsent, c.AbsentSelector != "", seen.Absent},
		{ConditionText, c.Text != "", seen.Text},
		{ConditionCookie, c.Cookie != "", seen.Cookie},
	} {
		if k.given {
			o.Conditions = append(o.Conditions, Condition{k.kind, k.held})
			o.LoggedIn = o.LoggedIn && k.held
		}
	}
	return o
}

// observation is what a look at the tab shows. It is empty if the document is not there
// yet, or is Chrome's own (an error page).
type observation struct {
	URL      string `json:"url"`
	Loaded   bool   `json:"loaded"`
	Elements int    `json:"elements"`
	Selector bool   `json:"selector"`
	Absent   bool   `json:"absent"`
	Text     bool   `json:"text"`
	Problem  string `json:"problem"`
	Cookie   bool   `json:"-"`
	shown    bool   // the site's document is there
}

const lookScript = `(({selector, absent, text}) => {
  if (!/^https?:$/.test(location.protocol) || document.readyState === "loading") return {};
  const has = (name, css) => {
    try { return document.querySelector(css) !== null; } catch { throw name; }
  };
  try {
    return {
      url: location.origin + location.pathname,
      loaded: document.readyState === "complete",
      elements: document.getElementsByTagName("*").length,
      selector: selector !== "" && has("selector", selector),
      absent: absent !== "" && !has("absent_selector", absent),
      text: text !== "" && (document.body?.innerText ?? "").includes(text),
    };
  } catch (name) {
    return {url: location.origin + location.pathname, problem: name + " is not a valid CSS selector"};
  }
})(%s)`

// look reads the conditions in an isolated world, which the page's scripts cannot see. If
// the document is replaced meanwhile, look returns an empty sight.
func (t *Tab) look(ctx context.Context, c Check) observation {
	var seen observation
	world, err := cdp.Call(ctx, t.session, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{
		FrameID: cdp.FrameID(t.id), WorldName: "check"}) // the name makes Chrome reuse one world for each document
	if err != nil {
		return seen
	}
	wanted, err := json.Marshal(map[string]string{"selector": c.Selector, "absent": c.AbsentSelector, "text": c.Text})
	if err != nil {
		return seen
	}
	yes := true
	res, err := cdp.Call(ctx, t.session, runtime.Evaluate, runtime.EvaluateParams{
		Expression: fmt.Sprintf(lookScript, wanted), ContextID: world.ExecutionContextID, ReturnByValue: &yes})
	if err != nil || res.ExceptionDetails != nil || json.Unmarshal(res.Result.Value, &seen) != nil {
		return observation{}
	}
	seen.shown = seen.URL != ""
	if c.Cookie != "" {
		jar, err := cdp.Call(ctx, t.session, network.GetCookies, network.GetCookiesParams{URLs: []string{c.URL}})
		if err == nil {
			for _, cookie := range jar.Cookies {
				seen.Cookie = seen.Cookie || cookie.Name == c.Cookie
			}
		}
	}
	return seen
}
