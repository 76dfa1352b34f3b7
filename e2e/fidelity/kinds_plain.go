package main

import (
	"context"
	"strings"
)

// plain returns the kinds in tabs whose documents have no scripts: a page in the
// background with a frame of another site, and documents that are not pages. A CDP
// client puts the state there.
func plain() []kind {
	kinds := []kind{
		{"page without scripts: window.name", inTabs, inTab(plainTab, `window.name = mark`), inTab(plainTab, `return window.name`)},
		{"page without scripts: sessionStorage", inTabs, keepIn(plainTab), readIn(plainTab)},
		{"… in its third-party frame", inTabs, inPlainFrame(`sessionStorage.setItem("kind", "framed")`), inPlainFrame(`sessionStorage.getItem("kind")`)},
	}
	for _, document := range []string{"text", "xml", "image"} {
		kinds = append(kinds, kind{document + " document: sessionStorage", inTabs, keepIn("tab=" + document), readIn("tab=" + document)})
	}
	return kinds
}

// plainTabs are the addresses of those tabs, relative to an origin.
var plainTabs = []string{"/plain?frame=b&" + plainTab, "/text?tab=text", "/xml?tab=xml", "/image?tab=image"}

func keepIn(tab string) step { return inTab(tab, `sessionStorage.setItem("kind", mark)`) }

func readIn(tab string) step { return inTab(tab, `return sessionStorage.getItem("kind")`) }

// inPlainFrame evaluates an expression in the frame of the plain tab, in an isolated
// world. The frame has no script that could be called.
func inPlainFrame(expression string) step {
	return func(ctx context.Context, at *visit) (value string, err error) {
		t, err := at.find(ctx, plainTab)
		if t == nil || err != nil {
			return "", err
		}
		if err := t.await(ctx, arrived); err != nil {
			return "", err
		}
		err = eventually(ctx, loadDeadline, "the frame can be read", func() (bool, error) {
			there, session, id, err := t.frame(ctx, "/plain")
			if !there || err != nil {
				return false, err
			}
			value, err = (&tab{browser: t.browser, session: session}).inWorld(ctx, id, expression)
			return err == nil, nil // its document may not have loaded yet
		})
		return value, err
	}
}

// frame finds the tab's frame whose address contains a text. The frame may be in its own
// process or in the tab's.
func (t *tab) frame(ctx context.Context, text string) (there bool, session, id string, err error) {
	all, err := t.targets(ctx)
	if err != nil {
		return false, "", "", err
	}
	for _, other := range all {
		if other.Type == "iframe" && strings.Contains(other.URL, text) {
			own, err := t.attach(ctx, other.ID)
			if err != nil {
				return false, "", "", err
			}
			return true, own.session, other.ID, nil
		}
	}
	var got struct {
		FrameTree struct {
			ChildFrames []struct{ Frame struct{ ID, URL string } }
		}
	}
	err = t.do(ctx, "Page.getFrameTree", nil, &got)
	for _, child := range got.FrameTree.ChildFrames {
		if strings.Contains(child.Frame.URL, text) {
			return true, t.session, child.Frame.ID, err
		}
	}
	return false, "", "", err
}

// inWorld evaluates an expression in an isolated world of a frame. It returns the value,
// or "" if that is not a string.
func (t *tab) inWorld(ctx context.Context, frame, expression string) (string, error) {
	var world struct{ ExecutionContextID int }
	if err := t.do(ctx, "Page.createIsolatedWorld", obj{"frameId": frame}, &world); err != nil {
		return "", err
	}
	var got struct{ Result struct{ Value any } }
	err := t.do(ctx, "Runtime.evaluate", obj{"expression": expression, "contextId": world.ExecutionContextID, "returnByValue": true}, &got)
	value, _ := got.Result.Value.(string)
	return value, err
}
