package restore

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/domstorage"
	"github.com/chromedp/cdproto/runtime"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// addWanted records what a script is to apply of a storage area.
func (l *tabScript) addWanted(area state.Area) {
	items := map[string]string{}
	for _, i := range area.Items {
		items[i.Key] = i.Value
	}
	l.wanted[area.StorageKey], l.stored[area.StorageKey] = items, map[string]bool{}
}

// handle handles an event: a target that attached, which is allowed to run; a new
// document of a frame; or an item that was stored.
func (h *Tabs) handle(e mux.Event) {
	if h.attached(e) {
		h.run(h.tabs[len(h.tabs)-1]) // opened by a page
	}
	h.navigated(e)
	h.itemStored(e)
}

// itemStored records an item of sessionStorage that Chrome reported as stored with its
// saved value. The script that applies it runs before any script of the page. So an item
// that is missing without such an event was never stored.
func (h *Tabs) itemStored(e mux.Event) {
	if e.Method != domstorage.DomStorageItemAdded.Method && e.Method != domstorage.DomStorageItemUpdated.Method {
		return
	}
	var item struct {
		StorageID domstorage.StorageID `json:"storageId"`
		Key       string               `json:"key"`
		NewValue  string               `json:"newValue"`
	}
	t := h.tabOf(e.SessionID)
	if t == nil || json.Unmarshal(e.Params, &item) != nil || item.StorageID.IsLocalStorage {
		return
	}
	area := string(item.StorageID.StorageKey)
	if value, wanted := t.script.wanted[area][item.Key]; wanted && value == item.NewValue {
		t.script.stored[area][item.Key] = true
	}
}

// scriptedTabs lists the tabs in which a script applied state, and what is known of its
// effect.
func (h *Tabs) scriptedTabs() []baseline.ScriptedTab {
	var tabs []baseline.ScriptedTab
	for _, t := range h.tabs {
		if t.script != nil {
			tabs = append(tabs, baseline.ScriptedTab{ID: string(t.info.TargetID), URL: t.script.remaining.URL, Stored: t.script.stored, Name: t.script.nameResult})
		}
	}
	return tabs
}

// nameScript reads the name and whether the page has a script element.
const nameScript = `({name: window.name, scripts: document.scripts.length > 0})`

// checkName compares a page's window.name with the saved one and records the result.
func (h *Tabs) checkName(ctx context.Context, t *heldTab) {
	yes := true
	res, err := cdp.Call(ctx, h.env.Driver.Session(t.session), runtime.Evaluate, runtime.EvaluateParams{
		Expression: nameScript, ReturnByValue: &yes, ThrowOnSideEffect: &yes})
	var seen struct {
		Name    string
		Scripts bool
	}
	switch {
	case err != nil:
	case res.ExceptionDetails != nil: // the page has overridden what the script reads
		t.script.nameResult = baseline.NameMaybeChanged
	case json.Unmarshal(res.Result.Value, &seen) != nil:
	case seen.Name == t.script.name:
		t.script.nameResult = baseline.NamePresent
	case seen.Scripts:
		t.script.nameResult = baseline.NameMaybeChanged
	}
}

// answerDeadline bounds the wait for the pages' last answers. A page that hangs does not answer.
const answerDeadline = 3 * time.Second

// handleRemaining handles the events of the scripts that ran last, and checks the names.
// Tabs that open meanwhile do not wait for a page that does not answer.
func (h *Tabs) handleRemaining() {
	// The checks run in parallel, so that a tab whose site does not answer does not delay
	// the others.
	ctx, cancel := context.WithTimeout(h.env.Life, answerDeadline)
	defer cancel()
	var answers sync.WaitGroup
	for _, t := range h.tabs {
		if t.script == nil {
			continue
		}
		if t.script.name != "" {
			answers.Go(func() { h.checkName(ctx, t) })
		}
		for _, s := range t.script.sessions {
			// Each page handles its commands in order, and its events come before the
			// answer.
			answers.Go(func() { _, _ = cdp.Call(ctx, h.env.Driver.Session(s), domstorage.Disable, cdp.Empty{}) })
		}
	}
	answered := make(chan struct{})
	go func() {
		answers.Wait()
		close(answered)
	}()
	events := h.events
	for waits := true; waits; {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			h.handle(e)
		case <-answered:
			waits = false
		}
	}
	ctx, cancel = context.WithTimeout(h.env.Life, releaseDeadline)
	defer cancel()
	h.untilNow(ctx, h.handle)
}
