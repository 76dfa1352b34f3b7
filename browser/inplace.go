package browser

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/domstorage"
	"github.com/chromedp/cdproto/runtime"

	"github.com/stasisd/stasis/browser/baseline"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// want notes what a script is to lay down of a storage area.
func (l *laying) want(area state.Area) {
	items := map[string]string{}
	for _, i := range area.Items {
		items[i.Key] = i.Value
	}
	l.wanted[area.StorageKey], l.inPlace[area.StorageKey] = items, map[string]bool{}
}

// hear takes an event: a target that attached, which is let go; a document of a
// frame; or an item that was stored.
func (h *hold) hear(ctx context.Context, e mux.Event) {
	if h.take(e) {
		h.run(h.tabs[len(h.tabs)-1]) // a page has opened it
	}
	h.navigated(ctx, e)
	h.stored(e)
}

// stored notes an item of sessionStorage that Chrome said was stored with its
// saved value. The script that lays it down runs before any of the page's, so an
// item that is missing without such an event was never there.
func (h *hold) stored(e mux.Event) {
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
	if value, wanted := t.laying.wanted[area][item.Key]; wanted && value == item.NewValue {
		t.laying.inPlace[area][item.Key] = true
	}
}

// scripted are the tabs in which a script applied something, and what is known of that.
func (h *hold) scripted() []baseline.ScriptedTab {
	var tabs []baseline.ScriptedTab
	for _, t := range h.tabs {
		if t.laying != nil {
			tabs = append(tabs, baseline.ScriptedTab{URL: t.laying.left.URL, Stored: t.laying.inPlace, Name: t.laying.named})
		}
	}
	return tabs
}

// nameScript reads the name, and whether the page has had a script.
const nameScript = `({name: window.name, scripts: document.scripts.length > 0})`

// lookForName looks at a page's window.name.
func (h *hold) lookForName(ctx context.Context, t *heldTab) {
	yes := true
	res, err := cdp.Call(ctx, h.b.driver.Session(t.session), runtime.Evaluate, runtime.EvaluateParams{
		Expression: nameScript, ReturnByValue: &yes, ThrowOnSideEffect: &yes})
	var seen struct {
		Name    string
		Scripts bool
	}
	switch {
	case err != nil:
	case res.ExceptionDetails != nil: // the page has put a script of its own in the way
		t.laying.named = baseline.NameTaken
	case json.Unmarshal(res.Result.Value, &seen) != nil:
	case seen.Name == t.laying.name:
		t.laying.named = baseline.NameThere
	case seen.Scripts:
		t.laying.named = baseline.NameTaken
	}
}

// hearRest hears what the scripts have stored that were run last, and looks for
// the names. A page that does not answer is not waited for long.
func (h *hold) hearRest() {
	// One tab whose site did not answer must not cost the others their look.
	ctx, cancel := context.WithTimeout(h.b.ctx, keyDeadline)
	defer cancel()
	var answers sync.WaitGroup
	for _, t := range h.tabs {
		if t.laying == nil {
			continue
		}
		if t.laying.name != "" {
			answers.Go(func() { h.lookForName(ctx, t) })
		}
		for _, s := range t.laying.sessions {
			// Each page takes its commands in order, and its events come before the answer.
			answers.Go(func() { _, _ = cdp.Call(ctx, h.b.driver.Session(s), domstorage.Disable, cdp.Empty{}) })
		}
	}
	answers.Wait()
	h.untilNow(ctx, func(e mux.Event) { h.hear(ctx, e) })
}
