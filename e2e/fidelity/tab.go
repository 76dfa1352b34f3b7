package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// Deadlines of one script and of a page's load, far longer than either takes.
const (
	scriptDeadline = 2 * time.Minute
	loadDeadline   = 2 * time.Minute
	answerDeadline = 5 * time.Second       // of one check of a condition in a page
	poll           = 20 * time.Millisecond // between two checks of a condition
)

// blankPage is the address of a new tab. loaded is true in a page once it has loaded.
const (
	blankPage = "about:blank"
	loaded    = `document.readyState === "complete"`
	arrived   = loaded + ` && location.href !== "` + blankPage + `"` // a tab that is still navigating has a blank document
)

// obj holds the parameters of a CDP command.
type obj map[string]any

// target is an entry of CDP's Target.getTargets.
type target struct {
	ID      string `json:"targetId"`
	Type    string `json:"type"`
	URL     string `json:"url"`
	Context string `json:"browserContextId"`
}

// browser is a browser as one client sees it: the pages of one browser context.
type browser struct {
	*rig.Conn
	context string // the browser context of the method's pages
}

// connect attaches to a browser. It uses the context of the first page: a client library
// may have made one besides the default.
func connect(ctx context.Context, url string) (*browser, error) {
	c, err := rig.Dial(ctx, url)
	if err != nil {
		return nil, err
	}
	b := &browser{Conn: c}
	all, err := b.targets(ctx)
	if err != nil {
		c.Close()
		return nil, err
	}
	for _, t := range all {
		if t.Type == "page" {
			b.context = t.Context
			return b, nil
		}
	}
	c.Close()
	return nil, errors.New("the browser has no page")
}

func (b *browser) targets(ctx context.Context) ([]target, error) {
	var got struct{ TargetInfos []target }
	return got.TargetInfos, b.Call(ctx, "", "Target.getTargets", nil, &got)
}

// pages returns the open tabs of the context.
func (b *browser) pages(ctx context.Context) ([]target, error) {
	all, err := b.targets(ctx)
	var pages []target
	for _, t := range all {
		if t.Type == "page" && t.Context == b.context {
			pages = append(pages, t)
		}
	}
	return pages, err
}

// tab is a tab to which the connection is attached.
type tab struct {
	*browser
	target, session string
}

func (b *browser) attach(ctx context.Context, id string) (*tab, error) {
	var got struct{ SessionID string }
	err := b.Call(ctx, "", "Target.attachToTarget", obj{"targetId": id, "flatten": true}, &got)
	return &tab{browser: b, target: id, session: got.SessionID}, err
}

// open makes a tab in the background and loads an address in it.
func (b *browser) open(ctx context.Context, url string) (*tab, error) {
	var made struct{ TargetID string }
	params := obj{"url": blankPage, "background": true, "browserContextId": b.context}
	if err := b.Call(ctx, "", "Target.createTarget", params, &made); err != nil {
		return nil, err
	}
	t, err := b.attach(ctx, made.TargetID)
	if err != nil {
		return nil, err
	}
	// The client that made the tab may still hold it.
	if err := t.await(ctx, loaded); err != nil || url == blankPage {
		return t, err
	}
	return t, t.visit(ctx, url)
}

// do sends a command to the tab.
func (t *tab) do(ctx context.Context, method string, params, out any) error {
	return t.Call(ctx, t.session, method, params, out)
}

// visit navigates to an address and waits until the page has loaded.
func (t *tab) visit(ctx context.Context, url string) error {
	var got struct{ ErrorText string }
	if err := t.do(ctx, "Page.navigate", obj{"url": url}, &got); err != nil {
		return err
	}
	if got.ErrorText != "" {
		return fmt.Errorf("%s: %s", url, got.ErrorText)
	}
	return t.await(ctx, loaded)
}

// await waits until an expression is true in the page.
func (t *tab) await(ctx context.Context, expression string) error {
	ctx, cancel := context.WithTimeout(ctx, loadDeadline)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		// Between two documents there is no context to evaluate in, or it does not
		// answer.
		soon, cancel := context.WithTimeout(ctx, answerDeadline)
		v, err := t.evaluate(soon, "String("+expression+")")
		cancel()
		if err == nil && v == "true" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			at, _ := t.url(context.WithoutCancel(ctx)) // only for the message
			return fmt.Errorf("%s: not true in time: %s", at, expression)
		}
	}
}

// evaluate returns the value of an expression, which must be a string or nothing.
func (t *tab) evaluate(ctx context.Context, expression string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, scriptDeadline)
	defer cancel()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	params := obj{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}
	if err := t.do(ctx, "Runtime.evaluate", params, &got); err != nil {
		return "", err
	}
	if e := got.ExceptionDetails; e != nil {
		first, _, _ := strings.Cut(e.Exception.Description, "\n")
		return "", errors.New(first)
	}
	var value *string
	if got.Result.Value == nil {
		return "", nil
	}
	if err := json.Unmarshal(got.Result.Value, &value); err != nil {
		return "", fmt.Errorf("the script returned %s; want a string or nothing", got.Result.Value)
	}
	if value == nil {
		return "", nil
	}
	return *value, nil
}

// url returns the tab's address, or "" if the tab is closed.
func (t *tab) url(ctx context.Context) (string, error) {
	all, err := t.targets(ctx)
	for _, other := range all {
		if other.ID == t.target {
			return other.URL, nil
		}
	}
	return "", err
}

// shut closes the tab and waits until it is gone.
func (t *tab) shut(ctx context.Context) error {
	if err := t.Call(ctx, "", "Target.closeTarget", obj{"targetId": t.target}, nil); err != nil {
		return err
	}
	return eventually(ctx, loadDeadline, "the tab closes", func() (bool, error) {
		url, err := t.url(ctx)
		return url == "", err
	})
}

// eventually waits until a condition is true. An error ends the wait.
func eventually(ctx context.Context, within time.Duration, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if done, err := is(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited for: %s; it did not happen within %s", what, within)
		}
	}
}
