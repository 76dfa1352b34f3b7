package browser

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// foreground keeps every tab running as the one in front while CDP clients are connected:
// visible and focused, with timers and frames at full speed. A client that drives several
// tabs at once would otherwise find all but one slowed down. Chrome slows tabs in the
// background down again when the last client leaves, so an environment that nobody drives
// costs no more.
//
// Emulation.setFocusEmulationEnabled does this for one page, as long as the session that
// set it lasts. Only foreground uses its connection, and it stays attached, because a
// detached session could end a page's authenticator (see [passkey.Reader]).
type foreground struct {
	mux  *mux.Mux
	life context.Context // ends with the browser
	work sync.WaitGroup

	mu       sync.Mutex
	ended    bool
	clients  int
	driver   *mux.Driver // nil before the first client
	sessions map[target.SessionID]struct{}
	fresh    map[target.SessionID]freshTab // those of new tabs, which are in front; see settle
}

// freshTab is a tab that opened blank. navigated receives a value when it shows a page.
type freshTab struct {
	id        target.ID
	navigated chan struct{}
}

// enter counts a client. The first one brings all tabs to full speed. It does not wait.
func (f *foreground) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients++
	switch {
	case f.clients > 1, f.ended:
	case f.sessions == nil:
		f.sessions, f.fresh = map[target.SessionID]struct{}{}, map[target.SessionID]freshTab{}
		f.work.Go(f.attach)
	default:
		f.set(true)
	}
}

// leave counts a client that has left. The last one ends the full speed.
func (f *foreground) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients--; f.clients == 0 {
		f.set(false)
	}
}

// wait returns when the work has ended, which is after the browser and its pipe.
func (f *foreground) wait() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.work.Wait()
}

// set sends every tab whether it counts as focused. The caller holds mu.
func (f *foreground) set(on bool) {
	for s := range f.sessions {
		f.post(s, on)
	}
}

func (f *foreground) post(s target.SessionID, on bool) {
	// It fails only with the pipe, and then all has ended.
	_ = f.driver.Post(f.life, s, emulation.SetFocusEmulationEnabled.Method, emulation.SetFocusEmulationEnabledParams{Enabled: on})
}

// attach attaches to all tabs, also those that open later, until the browser ends. It does
// not use Target.setAutoAttach: Chromium 156 then never returns from the window.open call of
// a page, unless the new page waits for its debugger.
func (f *foreground) attach() {
	driver, err := f.mux.Driver(f.life)
	if err != nil {
		return // Chrome has ended
	}
	defer driver.Close()
	f.mu.Lock()
	f.driver = driver
	f.mu.Unlock()
	events, stop := driver.Events(target.TargetCreated.Method, target.TargetInfoChanged.Method, target.DetachedFromTarget.Method)
	defer stop()
	if _, err := cdp.Call(f.life, driver, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{
		Discover: true, Filter: target.Filter{{Type: "page"}}}); err != nil {
		return // Chrome has ended
	}
	for e := range events {
		f.handle(e)
	}
}

// settle is how long a blank tab, or one that shows its first page, is left alone. It has just
// opened, so it is in front, and a client navigates it next. If the emulation begins during the
// navigation, Chromium 156 shows a PDF in one of five such navigations never: the tab stays
// blank (measured).
const settle = time.Second

// settled brings a new tab to full speed after a while. It waits for the end of a navigation,
// which can take seconds on a busy machine.
func (f *foreground) settled(s target.SessionID, tab freshTab) {
	navigated, shows := tab.navigated, false
	quiet := time.NewTimer(settle)
	defer quiet.Stop()
	for {
		select {
		case <-navigated:
			navigated, shows = nil, true
		case <-quiet.C:
			if shows || !f.isFresh(s) || !f.navigates(tab.id) {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.speedUp(s)
				return
			}
		case <-f.life.Done():
			return
		}
		quiet.Reset(settle)
	}
}

// isFresh reports whether a new tab waits for full speed. It does not if it has closed, or if
// another tab has opened in front of it.
func (f *foreground) isFresh(s target.SessionID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, fresh := f.fresh[s]
	return fresh
}

// navigates reports whether a blank tab is being navigated: Chrome then reports the next
// address, although it sends no event before the page is there.
func (f *foreground) navigates(id target.ID) bool {
	at, err := cdp.Call(f.life, f.driver, target.GetTargetInfo, target.GetTargetInfoParams{TargetID: id})
	return err == nil && at.TargetInfo != nil && !isBlank(at.TargetInfo)
}

func isBlank(tab *target.Info) bool { return tab.URL == "" || tab.URL == blankURL }

// speedUp brings a new tab to full speed, unless that was done or the tab has closed. The
// caller holds mu.
func (f *foreground) speedUp(s target.SessionID) {
	if _, fresh := f.fresh[s]; fresh && f.clients > 0 {
		f.post(s, true)
	}
	delete(f.fresh, s)
}

// handle handles a tab that exists, or has opened, shows another page, or has closed.
func (f *foreground) handle(e mux.Event) {
	switch e.Method {
	case target.TargetCreated.Method:
		var made target.EventTargetCreated
		if json.Unmarshal(e.Params, &made) != nil || made.TargetInfo == nil || f.driver.Hidden(made.TargetInfo.TargetID) {
			return
		}
		yes := true
		at, err := cdp.Call(f.life, f.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: made.TargetInfo.TargetID, Flatten: &yes})
		if err != nil {
			return // it has closed
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for s := range f.fresh { // this tab is in front of them
			f.speedUp(s)
		}
		f.sessions[at.SessionID] = struct{}{}
		switch {
		case isBlank(made.TargetInfo):
			tab := freshTab{made.TargetInfo.TargetID, make(chan struct{}, 1)}
			f.fresh[at.SessionID] = tab
			f.work.Go(func() { f.settled(at.SessionID, tab) })
		case f.clients > 0:
			f.post(at.SessionID, true)
		}
	case target.TargetInfoChanged.Method:
		var now target.EventTargetInfoChanged
		if json.Unmarshal(e.Params, &now) != nil || now.TargetInfo == nil || isBlank(now.TargetInfo) {
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, tab := range f.fresh {
			if tab.id == now.TargetInfo.TargetID {
				select {
				case tab.navigated <- struct{}{}:
				default:
				}
			}
		}
	case target.DetachedFromTarget.Method:
		var gone target.EventDetachedFromTarget
		if json.Unmarshal(e.Params, &gone) == nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			delete(f.sessions, gone.SessionID)
			delete(f.fresh, gone.SessionID)
		}
	}
}
