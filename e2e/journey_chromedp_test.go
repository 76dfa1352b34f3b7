package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"
)

// runChromedp runs a client script with chromedp's remote allocator. It uses the first
// tab until a step chooses another. Tabs stay open when the client disconnects.
func runChromedp(ctx context.Context, s script) ([]json.RawMessage, error) {
	ctx, leave := remote.NewAllocator(ctx, s.Endpoint, remote.NoModifyURL)
	defer leave()
	browser, leave := chromedp.NewContext(ctx)
	defer leave()
	tab, leave, err := tabChromedp(browser, "")
	defer func() { leave() }()
	results := []json.RawMessage{}
	for _, step := range s.Steps {
		if err != nil {
			return results, err
		}
		if contains, ok := step["contains"].(string); ok && step["do"] == "usePage" {
			leave()
			tab, leave, err = tabChromedp(browser, contains)
			results = append(results, nil)
			continue
		}
		result, err := stepChromedp(tab, step)
		if step["do"] == "pages" {
			result, err = pagesChromedp(browser)
		}
		if err != nil {
			return results, fmt.Errorf("%v: %w", step, err)
		}
		results = append(results, result)
	}
	return results, err
}

// tabChromedp attaches to the first tab whose address contains a text. It waits until
// there is one.
func tabChromedp(browser context.Context, contains string) (tab context.Context, leave context.CancelFunc, err error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(stepDeadline); ; {
		targets, err := chromedp.Targets(browser)
		if err != nil {
			return nil, func() {}, err
		}
		for _, t := range targets {
			if t.Type == "page" && strings.Contains(t.URL, contains) {
				tab, leave = chromedp.NewContext(browser, chromedp.WithTargetID(t.TargetID), chromedp.WithDetachOnCancel())
				return tab, leave, chromedp.Do(tab) // binds the tab to this context instead of to its first step
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			return nil, func() {}, fmt.Errorf("no tab has %q in its address", contains)
		}
	}
}

// pagesChromedp returns the addresses of the tabs.
func pagesChromedp(browser context.Context) (json.RawMessage, error) {
	targets, err := chromedp.Targets(browser)
	if err != nil {
		return nil, err
	}
	pages := []map[string]string{}
	for _, t := range targets {
		if t.Type == "page" {
			pages = append(pages, map[string]string{"url": t.URL})
		}
	}
	return json.Marshal(pages)
}

func stepChromedp(ctx context.Context, s step) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, stepDeadline)
	defer cancel()
	arg := func(name string) string { v, _ := s[name].(string); return v }
	switch s["do"] {
	case "goto":
		return nil, chromedp.Do(ctx, chromedp.Navigate(arg("url")))
	case "fill":
		return nil, chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS(arg("selector")), arg("value")))
	case "click":
		return nil, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(arg("selector"))))
	case "evaluate":
		return evalChromedp(ctx, arg("expression"))
	case "waitForFunction":
		return awaitChromedp(ctx, arg("expression"))
	case "newPage":
		_, err := chromedp.CallBrowser(ctx, target.CreateTarget, target.CreateTargetParams{URL: arg("url")})
		return nil, err
	case "pages":
		return nil, nil // runChromedp does this step, in the browser
	default:
		return nil, fmt.Errorf("runChromedp does not have this step")
	}
}

func evalChromedp(ctx context.Context, expression string) (json.RawMessage, error) {
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	return raw, err
}

// awaitChromedp polls an expression itself, because chromedp.Poll does not survive a
// navigation.
func awaitChromedp(ctx context.Context, expression string) (json.RawMessage, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		value, err := evalChromedp(ctx, expression)
		switch string(value) {
		case "", "null", "false", "undefined", `""`, "0":
		default:
			if err == nil {
				return value, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w (last: %v)", expression, ctx.Err(), err)
		}
	}
}
