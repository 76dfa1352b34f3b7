package browser

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// dropWorld is the name of the isolated script world that handles dropped files in a
// frame.
const dropWorld = "stasis-drop"

// takeFiles makes a frame accept files that are dragged over any part of it. Otherwise
// Chrome opens files that no page accepts in a new tab (seen with 156, in both engines).
// The script listens first and in an isolated world, so that the page cannot interfere.
// The page's own handling of files does not change. Chrome passes files to a file input
// only if nothing handles the drop, so the script does that too.
const takeFiles = `if (!self.stasisDrop) { self.stasisDrop = true;
	const give = (input, files) => {
		const given = new DataTransfer();
		for (const file of [...files].slice(0, input.multiple ? files.length : 1)) given.items.add(file);
		setTimeout(() => { // after the page's own listeners, as Chrome does
			input.files = given.files;
			input.dispatchEvent(new Event("input", {bubbles: true, composed: true}));
			input.dispatchEvent(new Event("change", {bubbles: true}));
		});
	};
	for (const kind of ["dragenter", "dragover", "drop"])
		addEventListener(kind, (e) => {
			if (!e.dataTransfer || !e.dataTransfer.types.includes("Files")) return;
			e.preventDefault();
			const at = e.composedPath()[0];
			if (kind == "drop" && at instanceof HTMLInputElement && at.type == "file" && !at.disabled) give(at, e.dataTransfer.files);
		}, true) }`

// dropHandler prepares pages for files that clients drop on them.
type dropHandler struct{ tabs *tabs }

// ready prepares a page, and its out-of-process frames, for files that are dragged over
// it.
func (d dropHandler) ready(ctx context.Context, id target.ID) error {
	if err := d.readyTarget(ctx, id); err != nil {
		return err
	}
	res, err := cdp.Call(ctx, d.tabs.driver, target.GetTargets, target.GetTargetsParams{Filter: target.Filter{{Type: "iframe"}}})
	if err != nil {
		return err
	}
	for _, t := range res.TargetInfos {
		if err := d.readyTarget(ctx, t.TargetID); err != nil {
			select {
			case <-d.tabs.mux.TargetClosed(t.TargetID): // a frame that has ended needs nothing
			default:
				return err
			}
		}
	}
	return nil
}

// readyTarget prepares the frames of one target.
func (d dropHandler) readyTarget(ctx context.Context, id target.ID) error {
	return d.tabs.attached(ctx, id, func(at target.SessionID) error {
		s := d.tabs.driver.Session(at)
		tree, err := cdp.Call(ctx, s, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return err
		}
		return readyFrames(ctx, s, tree.FrameTree)
	})
}

func readyFrames(ctx context.Context, s cdp.Session, tree *page.FrameTree) error {
	world, err := cdp.Call(ctx, s, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.Frame.ID, WorldName: dropWorld})
	if err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{Expression: takeFiles, ContextID: world.ExecutionContextID}); err != nil {
		return err
	}
	for _, child := range tree.ChildFrames {
		if err := readyFrames(ctx, s, child); err != nil {
			return err
		}
	}
	return nil
}
