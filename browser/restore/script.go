package restore

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/domstorage"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// tabScript is what a script is still to apply in one tab: an area is off
// it when a frame of its storage key has its first document, window.name when
// the page has.
type tabScript struct {
	left state.Tab
	// sessions are the page's target and those of its frames, which Chrome
	// keeps in processes of their own: a script runs where it was put alone.
	sessions []target.SessionID
	// committed: the page has its first document.
	committed bool
	// failed: Chrome shows its own error page in place of that document.
	failed bool
	// wanted is what is applied, and stored what of it Chrome said was: values
	// and keys by storage key.
	wanted   map[string]map[string]string
	stored   map[string]map[string]bool
	name     string // window.name, "" for none
	nameSeen baseline.NameSeen
}

// prepare notes what a tab is to be given and returns its script, "" for nothing.
func (t *heldTab) prepare(tab state.Tab) string {
	script := apply.TabScript(tab)
	if script == "" {
		return ""
	}
	l := &tabScript{left: tab, sessions: []target.SessionID{t.session},
		wanted: map[string]map[string]string{}, stored: map[string]map[string]bool{}, name: tab.Name}
	l.left.Session = nil
	for _, area := range tab.Session {
		if _, named := state.ParseStorageKey(area.StorageKey); named && len(area.Items) > 0 {
			l.left.Session = append(l.left.Session, area)
			l.want(area)
		}
	}
	t.script = l
	return script
}

// done reports whether nothing is waited for any more.
func (l *tabScript) done() bool { return l == nil || l.committed && len(l.left.Session) == 0 }

// addScript posts the script that applies a tab's own state to a tab whose
// navigation is held: it is in place when the tab's document is made.
func (h *Tabs) addScript(t *heldTab, tab state.Tab) {
	if script := t.prepare(tab); script != "" {
		h.postScript(t.session, script)
		h.watchFrames(t.session)
	}
}

// postScript posts a script to a target, to run in each document from now on, and has
// Chrome tell what it stores. No page can notice either domain.
func (h *Tabs) postScript(s target.SessionID, script string) {
	h.post(s, domstorage.Enable.Method, nil)
	h.post(s, page.Enable.Method, nil)
	h.post(s, page.AddScriptToEvaluateOnNewDocument.Method, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// makeContext makes the script context of each frame in a target's process that
// has none yet, and with it runs the scripts that were put there. Chrome makes a
// document's context when something first runs in it: in the headless shell (156)
// that never happens in a document without scripts. Neither the page nor a client
// can notice the empty script.
func (h *Tabs) makeContext(s target.SessionID) {
	yes := true
	h.post(s, page.AddScriptToEvaluateOnNewDocument.Method, page.AddScriptToEvaluateOnNewDocumentParams{RunImmediately: &yes})
}

// watchFrames attaches to the frames that a target gets in other processes; each
// waits before its first script until it has its own.
func (h *Tabs) watchFrames(s target.SessionID) {
	yes := true
	h.post(s, target.SetAutoAttach.Method, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes, Filter: target.Filter{{Type: "iframe"}}})
}

// startFrame gives a frame's target its script and lets it run.
func (h *Tabs) startFrame(parent, s target.SessionID) {
	if t := h.tabOf(parent); t != nil {
		t.script.sessions = append(t.script.sessions, s)
		if script := apply.TabScript(t.script.left); script != "" {
			h.postScript(s, script)
		}
		h.watchFrames(s)
	}
	h.post(s, runtime.RunIfWaitingForDebugger.Method, nil)
}

// tabOf finds the tab that has a script, with a session among its targets.
func (h *Tabs) tabOf(s target.SessionID) *heldTab {
	for _, t := range h.tabs {
		if t.script != nil && slices.Contains(t.script.sessions, s) {
			return t
		}
	}
	return nil
}

// navigated notes a frame's first real document. The target's script has done
// its work for that frame's storage and must not run for it again.
func (h *Tabs) navigated(ctx context.Context, e mux.Event) {
	if e.Method != page.FrameNavigated.Method {
		return
	}
	var nav page.EventFrameNavigated
	if json.Unmarshal(e.Params, &nav) != nil || nav.Frame == nil || nav.Frame.URL == "about:blank" {
		return
	}
	if nav.Frame.ParentID == "" {
		h.documentShown(e.SessionID)
	}
	t := h.tabOf(e.SessionID)
	if t == nil {
		return
	}
	if nav.Frame.UnreachableURL != "" { // Chrome's own page in place of one that did not come
		t.script.failed = t.script.failed || nav.Frame.ParentID == ""
		return
	}
	h.makeContext(e.SessionID)
	l := t.script
	if nav.Frame.ParentID == "" {
		h.env.Unloaded.remove(t.info.TargetID)
		l.committed, l.left.Name = true, ""
	}
	if slices.ContainsFunc(l.left.Session, func(a state.Area) bool { return originOf(a) == nav.Frame.SecurityOrigin }) {
		key := h.keyOf(ctx, e.SessionID, nav.Frame)
		l.left.Session = slices.DeleteFunc(l.left.Session, func(a state.Area) bool { return a.StorageKey == key })
	}
	h.post(e.SessionID, page.Disable.Method, nil) // which drops the script
	if script := apply.TabScript(l.left); script != "" && !l.done() {
		h.postScript(e.SessionID, script)
	}
}

// How long a frame's storage key may take to be that of its new document, and
// how often it is looked for.
const (
	keyDeadline = time.Second
	keyPause    = 3 * time.Millisecond
)

// keyOf asks Chrome for the storage key of a frame that has a new document, ""
// where it has none. The page tells of the document a moment before Chrome
// itself knows, and until then the key is the old one's.
func (h *Tabs) keyOf(ctx context.Context, s target.SessionID, f *cdp.Frame) string {
	ctx, cancel := context.WithTimeout(ctx, keyDeadline)
	defer cancel()
	pause := time.NewTicker(keyPause)
	defer pause.Stop()
	for {
		// Of a document in another process than the last Chrome knows the frame a
		// moment later, and answers with an error until then.
		is, err := cdp.Call(ctx, h.env.Driver.Session(s), storage.GetStorageKey, storage.GetStorageKeyParams{FrameID: f.ID})
		if err == nil && originOf(state.Area{StorageKey: string(is.StorageKey)}) == f.SecurityOrigin {
			return string(is.StorageKey)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ""
		}
	}
}

func originOf(a state.Area) string {
	key, _ := state.ParseStorageKey(a.StorageKey)
	return key.Origin
}
