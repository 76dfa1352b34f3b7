package main

import (
	"context"
	"strings"
)

// plain are the kinds in tabs whose documents have no scripts: a page, behind the
// others, with a frame of another site, and documents that are no pages. What they
// have a client put there.
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

// plainTabs are the addresses of those tabs, below an origin.
var plainTabs = []string{"/plain?frame=b&" + plainTab, "/text?tab=text", "/xml?tab=xml", "/image?tab=image"}

func keepIn(tab string) step { return inTab(tab, `sessionStorage.setItem("kind", mark)`) }

func readIn(tab string) step { return inTab(tab, `return sessionStorage.getItem("kind")`) }

// inPlainFrame evaluates an expression in the frame of the plain tab, in a world
// of its own: the frame has no script to ask.
func inPlainFrame(expression string) step {
	return func(ctx context.Context, at *visit) (value string, err error) {
		t, err := at.find(ctx, plainTab)
		if t == nil || err != nil {
			return "", err
		}
		if err := t.await(ctx, arrived); err != nil {
			return "", err
		}
		err = eventually(ctx, loadDeadline, "the frame is there", func() (bool, error) {
			there, session, id, err := t.frame(ctx, "/plain")
			if !there || err != nil {
				return false, err
			}
			value, err = (&tab{browser: t.browser, session: session}).inWorld(ctx, id, expression)
			return err == nil, nil // its document may be on its way
		})
		return value, err
	}
}

// frame finds the tab's frame whose address has a text in it: in a process of its
// own, or in the tab's.
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

// inWorld evaluates an expression in a frame, in a script world of its own, and
// gives its value, "" where that is no string.
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
