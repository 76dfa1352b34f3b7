package restore

import (
	"cmp"
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

// tabScript is what a script still has to apply in one tab. An area is removed from it
// when a frame of its storage key has its first document, window.name when the page has.
type tabScript struct {
	remaining state.Tab
	// sessions are the page's target and those of its out-of-process frames: a script
	// runs only in the target that it was added to.
	sessions []target.SessionID
	// scripts has the identifier of each session's script, if Chrome has answered with it.
	scripts map[target.SessionID]page.ScriptIdentifier
	// committed: the page has its first document.
	committed bool
	// failed: Chrome shows its error page in place of that document.
	failed bool
	// wanted is what is to be applied: values by storage key and item key. stored is the
	// part of it that Chrome reported as stored.
	wanted     map[string]map[string]string
	stored     map[string]map[string]bool
	name       string // window.name, "" for none
	nameResult baseline.NameResult
}

// prepare records what a tab is to get and returns its script, "" if it gets nothing.
func (t *heldTab) prepare(tab state.Tab) string {
	script := apply.TabScript(tab)
	if script == "" {
		return ""
	}
	l := &tabScript{remaining: tab, sessions: []target.SessionID{t.session}, scripts: map[target.SessionID]page.ScriptIdentifier{},
		wanted: map[string]map[string]string{}, stored: map[string]map[string]bool{}, name: tab.Name}
	l.remaining.Session = nil
	for _, area := range tab.Session {
		if _, named := state.ParseStorageKey(area.StorageKey); named && len(area.Items) > 0 {
			l.remaining.Session = append(l.remaining.Session, area)
			l.addWanted(area)
		}
	}
	t.script = l
	return script
}

// done reports whether the script has applied everything.
func (l *tabScript) done() bool { return l == nil || l.committed && len(l.remaining.Session) == 0 }

// addScript posts the script that applies a tab's own state. The tab's navigation is
// held, so the script is in place before its document is created.
func (h *Tabs) addScript(t *heldTab, tab state.Tab) {
	if script := t.prepare(tab); script != "" {
		t.script.post(h.env, t.session, script)
		h.watchFrames(t.session)
	}
}

// makeContext creates the script context of each frame in a target's process that has
// none yet. Creating it runs the scripts that were added there. Chrome creates a
// document's context when a script first runs in it. In the headless shell (156) that
// never happens in a document without scripts. Neither the page nor a client can notice
// the empty script.
func (h *Tabs) makeContext(s target.SessionID) {
	yes := true
	h.post(s, page.AddScriptToEvaluateOnNewDocument.Method, page.AddScriptToEvaluateOnNewDocumentParams{RunImmediately: &yes})
}

// watchFrames attaches to the out-of-process frames of a target. Each waits before its
// first script until it has the script for its own storage.
func (h *Tabs) watchFrames(s target.SessionID) {
	yes := true
	h.post(s, target.SetAutoAttach.Method, target.SetAutoAttachParams{
		AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes, Filter: target.Filter{{Type: "iframe"}}})
}

// scriptDeadline bounds the wait until a frame that waits has its script, and replaceDeadline
// until a running page has another one. Chrome takes some milliseconds. Without its script a
// frame loses state; a page that is busy with its own scripts may get the other one later.
const (
	scriptDeadline  = 5 * time.Second
	replaceDeadline = time.Second
)

// startFrame gives a frame's target its script and lets the frame run. The renderer handles
// the script, and the browser process lets the frame run. So the frame waits for the answer
// to the script: otherwise a busy Chrome may create the document first, without the script.
// Nothing else waits for it: the frame's process may have other frames, whose scripts hang.
func (h *Tabs) startFrame(parent, s target.SessionID) {
	t, script := h.tabOf(parent), ""
	if t != nil {
		t.script.sessions = append(t.script.sessions, s)
		script = apply.TabScript(t.script.remaining)
		h.watchFrames(s)
	}
	if script == "" {
		h.post(s, runtime.RunIfWaitingForDebugger.Method, nil)
		return
	}
	t.script.enable(h.env, s)
	h.starting.Go(func() {
		ctx, cancel := context.WithTimeout(h.env.Life, scriptDeadline)
		defer cancel()
		// It is the firstScript of this session. Without an answer the frame runs all the same.
		_, _ = cdp.Call(ctx, h.env.Driver.Session(s), page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		h.post(s, runtime.RunIfWaitingForDebugger.Method, nil)
	})
}

// tabOf returns the tab with a script that has s among its sessions.
func (h *Tabs) tabOf(s target.SessionID) *heldTab {
	for _, t := range h.tabs {
		if t.script != nil && slices.Contains(t.script.sessions, s) {
			return t
		}
	}
	return nil
}

// navigated handles a frame's first real document. The target's script has then run for
// that frame's storage and must not run for it again.
func (h *Tabs) navigated(e mux.Event) {
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
	if nav.Frame.UnreachableURL != "" { // Chrome's error page in place of a document that did not load
		t.script.failed = t.script.failed || nav.Frame.ParentID == ""
		return
	}
	h.makeContext(e.SessionID)
	l := t.script
	if nav.Frame.ParentID == "" {
		h.env.PendingTabs.remove(t.info.TargetID)
		l.committed, l.remaining.Name = true, ""
	}
	if slices.ContainsFunc(l.remaining.Session, func(a state.Area) bool { return originOf(a) == nav.Frame.SecurityOrigin }) {
		key := h.keyOf(e.SessionID, nav.Frame)
		l.remaining.Session = slices.DeleteFunc(l.remaining.Session, func(a state.Area) bool { return a.StorageKey == key })
	}
	if script := apply.TabScript(l.remaining); script != "" && !l.done() {
		h.replaceScript(l, e.SessionID, script)
	} else {
		h.post(e.SessionID, page.Disable.Method, nil) // removes the script
	}
}

// enable makes Chrome report what a script stores in a target, and run scripts there. No page
// can notice either CDP domain.
func (l *tabScript) enable(env Environment, s target.SessionID) {
	for _, method := range []string{domstorage.Enable.Method, page.Enable.Method} {
		_ = env.Driver.Post(env.Life, s, method, nil) // the next call that waits for an answer reports a lost pipe
	}
}

// post posts a script that a target runs in each new document.
func (l *tabScript) post(env Environment, s target.SessionID, script string) {
	l.enable(env, s)
	delete(l.scripts, s)
	_ = env.Driver.Post(env.Life, s, page.AddScriptToEvaluateOnNewDocument.Method, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
}

// set is post that returns when the target has the script.
func (l *tabScript) set(ctx context.Context, env Environment, s target.SessionID, script string) error {
	l.enable(env, s)
	added, err := cdp.Call(ctx, env.Driver.Session(s), page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	if err == nil {
		l.scripts[s] = added.Identifier
	}
	return err
}

// replaceScript replaces the script that applies a tab's state in a target. The new one is
// added before the old one is removed, because a frame may get its document between the two.
// There both may run: a script only fills storage that is empty.
func (h *Tabs) replaceScript(l *tabScript, s target.SessionID, script string) {
	old := cmp.Or(l.scripts[s], firstScript)
	ctx, cancel := context.WithTimeout(h.env.Life, replaceDeadline)
	defer cancel()
	if err := l.set(ctx, h.env, s, script); err != nil { // a busy page; the old script must not run in its later documents
		h.post(s, page.Disable.Method, nil)
		l.post(h.env, s, script)
		return
	}
	h.post(s, page.RemoveScriptToEvaluateOnNewDocument.Method, page.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: old})
}

// firstScript is the identifier of a session's first script (Blink's InspectorPageAgent). A
// held tab gets its first script without an answer.
const firstScript page.ScriptIdentifier = "1"

// keyDeadline bounds the wait until Chrome reports the storage key of a frame's new
// document, which takes milliseconds. A frame that has navigated on has no such key any more, and
// a restore may wait for this one. keyPause is the interval between two queries.
const (
	keyDeadline = 3 * time.Second
	keyPause    = 3 * time.Millisecond
)

// keyOf asks Chrome for the storage key of a frame that has a new document, "" if it has
// none. The page reports the document shortly before the browser process knows it. Until
// then Chrome returns the key of the old document.
func (h *Tabs) keyOf(s target.SessionID, f *cdp.Frame) string {
	ctx, cancel := context.WithTimeout(h.env.Life, keyDeadline)
	defer cancel()
	pause := time.NewTicker(keyPause)
	defer pause.Stop()
	for {
		// If the document is in another process than the last one, Chrome answers with an
		// error until it knows the frame.
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
