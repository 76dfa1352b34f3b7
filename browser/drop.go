package browser

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// dropWorld is the name of the script world in which a frame is readied for files.
const dropWorld = "stasis-drop"

// takeFiles has a frame take files that are dragged over it, in whatever part: Chrome
// opens files in a new tab that no page takes (seen with 156, in both engines). It
// listens first and in a world of its own, so that no page can be in its way; what
// the page itself does with files stays as it is. Chrome gives files to a file input
// only where nobody takes the drop, so the frame gives them in Chrome's place.
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

// drops readies pages for files that clients drop on them.
type drops struct{ tabs *tabs }

// ready readies a page, and the frames that are targets of their own, for files
// that are dragged over it.
func (d drops) ready(ctx context.Context, id target.ID) error {
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
			case <-d.tabs.mux.Gone(t.TargetID): // a frame that has gone takes nothing
			default:
				return err
			}
		}
	}
	return nil
}

// readyTarget readies the frames of one target.
func (d drops) readyTarget(ctx context.Context, id target.ID) error {
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
