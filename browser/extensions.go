package browser

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/extensions"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// ExtensionDir returns the folder of an extension's files in a run directory.
func ExtensionDir(dir *Dir, id string) string {
	return filepath.Join(dir.Profile(), profile.Extensions, id)
}

// extensionPaths returns the paths of a browser's extensions. If the profile's files may
// be older than the document, it also sets whether each extension is enabled, from the
// document.
func extensionPaths(dir *Dir, doc state.Document, list []state.Extension) []profile.Extension {
	var out []profile.Extension
	for _, e := range list {
		x := profile.Extension{ID: e.ID, Path: ExtensionDir(dir, e.ID)}
		if saved := savedAs(doc, e.ID); saved != nil {
			x.Saved = true
			if doc.Datadir != state.DatadirClean {
				x.Enabled = &saved.Enabled
			}
		}
		out = append(out, x)
	}
	return out
}

// savedAs returns the document's extension with that ID, or nil.
func savedAs(doc state.Document, id string) *state.Extension {
	for i := range doc.Extensions {
		if doc.Extensions[i].ID == id {
			return &doc.Extensions[i]
		}
	}
	return nil
}

// extensionSet holds the extensions of one browser.
type extensionSet struct {
	driver *mux.Driver
	mux    *mux.Mux
	dir    *Dir
	wanted []state.Extension // requested by the session
	shell  bool              // the engine is the shell, which runs no extensions
	unused []state.Extension // of the environment, not used by the shell
}

// load loads over CDP what Chrome did not load from the profile: extensions that the
// profile does not know, and those whose files differ from the saved version. Chrome then
// notifies the extension that it was installed or updated. load returns, by ID, why
// Chrome refused an extension.
func (x *extensionSet) load(ctx context.Context, doc state.Document, unknown []string) (map[string]report.Reason, error) {
	load := map[string]bool{}
	for _, id := range unknown {
		load[id] = true
	}
	refused := map[string]report.Reason{}
	for _, e := range x.wanted {
		saved := savedAs(doc, e.ID)
		if !load[e.ID] && (saved == nil || saved.SHA256 == e.SHA256) {
			continue
		}
		_, err := cdp.Call(ctx, x.driver, extensions.LoadUnpacked, extensions.LoadUnpackedParams{Path: ExtensionDir(x.dir, e.ID)})
		if err != nil && (ctx.Err() != nil || x.mux.Err() != nil) {
			return nil, fault.Wrap(err, fault.BrowserFailed, "browser.extensions", "loading an extension failed")
		}
		if err != nil {
			// Chrome's message contains paths of files in the extension's folder.
			refused[e.ID] = report.Refused.With("Chrome refused it: " + strings.ReplaceAll(err.Error(), ExtensionDir(x.dir, e.ID), ""))
		}
	}
	return refused, nil
}

// states returns for each extension of Chrome whether it is enabled.
func (x *extensionSet) states(ctx context.Context) (map[string]bool, error) {
	res, err := cdp.Call(ctx, x.driver, extensions.GetExtensions, cdp.Empty{})
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, "browser.extensions", "Chrome did not list its extensions")
	}
	enabled := map[string]bool{}
	for _, e := range res.Extensions {
		enabled[e.ID] = e.Enabled
	}
	return enabled, nil
}

// report compares Chrome's extensions with those that it should have.
func (x *extensionSet) report(ctx context.Context, doc state.Document, refused map[string]report.Reason) ([]state.Component, error) {
	if len(x.wanted) == 0 {
		return nil, nil
	}
	enabled, err := x.states(ctx)
	if err != nil {
		return nil, err
	}
	var lines []state.Component
	for _, e := range x.wanted {
		line := state.Component{Name: state.ComponentExtensions, Origin: e.Origin(), Reason: refused[e.ID]}
		saved := savedAs(doc, e.ID)
		if saved != nil {
			line.Saved = 1
		}
		is, there := enabled[e.ID]
		want := saved == nil || saved.Enabled
		switch {
		case there && line.Reason.Code == "":
			line.Restored = 1
			if want && !is {
				line.Reason = report.Disabled.With("the extension is installed, and Chrome has disabled it")
			} else if saved != nil && doc.Datadir == state.DatadirNone {
				line.Reason = report.InstalledAnew.With("newly installed: its stored data is in the profile, which is not used")
			} else if saved != nil && saved.SHA256 != e.SHA256 {
				line.Reason = report.OtherVersion.With("version " + e.Version + " instead of " + saved.Version + ", as the create requested")
			}
		case line.Reason.Code == "":
			line.Reason = report.NotLoaded.With("Chrome did not load it")
		}
		line.Dropped = max(line.Saved-line.Restored, 0)
		lines = append(lines, line)
	}
	return lines, nil
}

// restore completes the extensions while the tabs and workers that could use them are
// paused, and reports the result.
func (x *extensionSet) restore(ctx context.Context, held *restore.Tabs, doc state.Document, unknown []string) ([]state.Component, error) {
	refused, err := x.load(ctx, doc, unknown)
	if err != nil {
		return nil, err
	}
	report, err := x.report(ctx, doc, refused)
	if err != nil {
		return nil, err
	}
	storage, err := x.applyStorage(ctx, held, doc)
	return append(report, storage...), err
}

// applyStorage writes the extensions' in-memory storage while their workers are paused,
// and then lets the workers run.
func (x *extensionSet) applyStorage(ctx context.Context, held *restore.Tabs, doc state.Document) ([]state.Component, error) {
	defer held.RunWorkers()
	var lines []state.Component
	for _, e := range x.wanted {
		saved := savedAs(doc, e.ID)
		if saved == nil || len(saved.Session) == 0 {
			continue
		}
		line := state.Component{Name: state.ComponentExtensionStorage, Origin: e.Origin(), Saved: len(saved.Session)}
		if err := hiddentab.WriteExtensionSession(ctx, x.driver, e.ID, saved.Session); err != nil {
			if ctx.Err() != nil || x.mux.Err() != nil {
				return nil, fault.Wrap(err, fault.BrowserFailed, "browser.extensions", "writing an extension's storage failed")
			}
			line.Dropped, line.Reason = line.Saved, report.NotWritten.With("the extension's session storage could not be written")
		} else {
			line.Restored = line.Saved
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// capture reads for each extension whether it is enabled, and its in-memory storage. It
// leaves out extensions that were removed.
func (x *extensionSet) capture(ctx context.Context, doc *state.Document) error {
	if x.shell {
		doc.Extensions = slices.Clone(x.unused)
		return nil
	}
	if len(x.wanted) == 0 {
		return nil
	}
	enabled, err := x.states(ctx)
	if err != nil {
		return err
	}
	for _, e := range x.wanted {
		is, there := enabled[e.ID]
		if !there {
			doc.Missed = append(doc.Missed, state.Missed{Component: state.ComponentExtensions, Origin: e.Origin(), Reason: "the extension is no longer installed"})
			continue
		}
		e.Enabled, e.Session = is, nil
		if is {
			if e.Session, err = hiddentab.ReadExtensionSession(ctx, x.driver, e.ID); err != nil {
				doc.Missed = append(doc.Missed, state.Missed{Component: state.ComponentExtensionStorage, Origin: e.Origin(),
					Reason: "its session storage could not be read"})
			}
		}
		doc.Extensions = append(doc.Extensions, e)
	}
	return ctx.Err()
}
