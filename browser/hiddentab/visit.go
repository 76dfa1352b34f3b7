package hiddentab

import (
	"context"
	"errors"
	"html"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// awaitLoadScript is a script that waits until the tab's document and all its frames have
// loaded.
const awaitLoadScript = `new Promise(done => document.readyState === "complete" ? done() : addEventListener("load", done))`

// visit navigates the tab so that it, or a frame of it, has the storage key: to the
// origin itself, or to another site with a frame of the origin. It returns the session
// and the script world (0: the page's own), which are valid until detach is called.
func (t *Tab) visit(ctx context.Context, key state.StorageKey) (cdp.Session, runtime.ExecutionContextID, func(), error) {
	top, inner := key.Origin+"/", ""
	frame := `<iframe src="` + html.EscapeString(key.Origin) + `/"></iframe>`
	switch {
	case key.TopLevelSite != "":
		top, inner = key.TopLevelSite+"/", frame
	case key.CrossSiteAncestor:
		// An opaque origin is cross-site to every other.
		inner = `<iframe src="data:text/html,` + html.EscapeString(frame) + `"></iframe>`
	}
	t.body.Store(&inner)
	nav, err := cdp.Call(ctx, t.session, page.Navigate, page.NavigateParams{URL: top})
	if err == nil && nav.ErrorText != "" {
		err = errors.New(nav.ErrorText)
	}
	if err != nil || inner == "" {
		return t.session, 0, func() {}, err
	}
	if err := evaluate(ctx, t.session, 0, awaitLoadScript, nil); err != nil {
		return nil, 0, nil, err
	}
	session, id, detach, err := t.frame(ctx, key.Origin+"/")
	if err != nil {
		return nil, 0, nil, err
	}
	world, err := t.world(ctx, session, id, key)
	if err != nil {
		detach()
		return nil, 0, nil, err
	}
	return session, world, detach, nil
}

// frame finds the tab's frame that shows a URL, in a separate process or in that of the
// tab's document.
func (t *Tab) frame(ctx context.Context, url string) (cdp.Session, cdp.FrameID, func(), error) {
	targets, err := cdp.Call(ctx, t.conn, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return nil, "", nil, err
	}
	for _, f := range targets.TargetInfos {
		if f.Type == "iframe" && f.ParentID == t.id && f.URL == url {
			session, detach, err := Attach(ctx, t.conn, f.TargetID)
			return session, cdp.FrameID(f.TargetID), detach, err
		}
	}
	tree, err := cdp.Call(ctx, t.session, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return nil, "", nil, err
	}
	var find func(*page.FrameTree) cdp.FrameID
	find = func(tree *page.FrameTree) cdp.FrameID {
		if tree.Frame.URL == url && tree.Frame.ParentID != "" {
			return tree.Frame.ID
		}
		for _, child := range tree.ChildFrames {
			if id := find(child); id != "" {
				return id
			}
		}
		return ""
	}
	if id := find(tree.FrameTree); id != "" {
		return t.session, id, func() {}, nil
	}
	return nil, "", nil, errors.New("the frame did not load")
}

// world creates a script world in a frame. It fails if the frame does not have the given
// storage key.
func (t *Tab) world(ctx context.Context, session cdp.Session, id cdp.FrameID, key state.StorageKey) (runtime.ExecutionContextID, error) {
	is, err := cdp.Call(ctx, session, storage.GetStorageKey, storage.GetStorageKeyParams{FrameID: id})
	if err != nil {
		return 0, err
	}
	if string(is.StorageKey) != key.String() {
		return 0, errors.New("the frame has another storage key")
	}
	made, err := cdp.Call(ctx, session, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: id})
	return made.ExecutionContextID, err
}
