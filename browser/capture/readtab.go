package capture

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/domstorage"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"
	"golang.org/x/sync/errgroup"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// TabDeadline bounds the wait for each answer of a tab. A page whose script never yields is
// not asked again, so it delays a save once. tabsDeadline bounds the reading and rereading of all
// tabs, so that slow ones do not make a save fail. What was not read in time is listed in Missed.
const (
	TabDeadline  = 5 * time.Second
	tabsDeadline = 20 * time.Second
)

// inPDFViewer ends the storage key of the frame in which Chrome's PDF viewer draws a PDF.
// The site's scripts do not run in that frame, and Chrome never answers a request for its
// storage.
const inPDFViewer = "^0chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai"

// reading is what was read of one tab.
type reading struct {
	tab    state.Tab
	local  []state.Area
	missed []state.Missed
	// temporary: the tab closes with a client
	temporary bool
	// navigated: the tab navigated while it was read, or Chrome refused an answer; see readUntilStable
	navigated  bool
	rereadings int
}

// readTabs reads all tabs at the same time, and ends the reading of one that does not answer.
func readTabs(ctx context.Context, conn Conn, targets []*target.Info) []reading {
	var pages []*target.Info
	frames := map[target.ID][]*target.Info{} // out-of-process frames, by page
	owner := map[target.ID]target.ID{}
	for _, t := range targets {
		switch t.Type {
		case "page":
			pages = append(pages, t)
			owner[t.TargetID] = t.TargetID
		case "iframe":
			owner[t.TargetID] = t.ParentID
		}
	}
	for _, t := range targets {
		if t.Type != "iframe" {
			continue
		}
		top := t.TargetID
		for hops := 0; owner[top] != top && owner[top] != "" && hops < len(targets); hops++ {
			top = owner[top]
		}
		frames[top] = append(frames[top], t)
	}
	readings := make([]reading, len(pages))
	var group errgroup.Group
	group.SetLimit(8)
	for i, p := range pages {
		group.Go(func() error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			silent := time.AfterFunc(TabDeadline, cancel)
			defer silent.Stop()
			readings[i] = readTab(ctx, tabConn{conn, silent}, p, frames[p.TargetID])
			readings[i].temporary = conn.Temporary(p.TargetID)
			return nil
		})
	}
	_ = group.Wait() // no function of the group fails: what is missing is in each reading
	return readings
}

// tabConn is the connection over which one tab is read. Each command gets TabDeadline.
type tabConn struct {
	Conn
	silent *time.Timer // ends the reading
}

func (c tabConn) Call(ctx context.Context, method string, params, result any) error {
	c.silent.Reset(TabDeadline)
	return c.Conn.Call(ctx, method, params, result)
}

func (c tabConn) Session(id target.SessionID) cdp.Session {
	return tabSession{c.Conn.Session(id), c.silent}
}

type tabSession struct {
	cdp.Session
	silent *time.Timer
}

func (s tabSession) Call(ctx context.Context, method string, params, result any) error {
	s.silent.Reset(TabDeadline)
	return s.Session.Call(ctx, method, params, result)
}

func readTab(ctx context.Context, conn Conn, p *target.Info, frames []*target.Info) reading {
	r := reading{tab: state.Tab{TargetID: string(p.TargetID), URL: p.URL, Title: p.Title}}
	miss := func(component, origin string, err error) {
		r.navigated = r.navigated || ctx.Err() == nil
		r.missed = append(r.missed, state.Missed{Component: component, Origin: origin, Reason: reason(ctx, err)})
	}
	s, detach, err := hiddentab.Attach(ctx, conn, p.TargetID)
	if err != nil {
		miss(state.ComponentSessionStorage, p.URL, err)
		return r
	}
	defer detach()
	history, err := cdp.Call(ctx, s, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		miss(state.ComponentHistory, p.URL, err)
	} else {
		r.tab.Current = int(history.CurrentIndex)
		for _, e := range history.Entries {
			r.tab.History = append(r.tab.History, state.HistoryEntry{URL: e.URL, Title: e.Title})
		}
		r.useCurrentEntry()
	}
	if crashed(ctx, conn, p.TargetID) {
		r.missed = append(r.missed, state.Missed{Component: state.ComponentSessionStorage, Origin: p.URL, Reason: "the page's process has died"})
		r.navigated = false
		return r
	}
	top := r.frames(ctx, s, miss)
	r.tab.ErrorPage = top != nil && top.UnreachableURL != ""
	r.tab.Unloaded = r.tab.ErrorPage || top == nil || top.URL != r.tab.URL && slices.Contains([]string{"", ":", blankURL}, top.URL)
	if seen, err := readView(ctx, s, cdp.FrameID(p.TargetID)); err != nil {
		miss(state.ComponentWindowName, r.tab.URL, err)
		r.tab.Active = true // a page that does not answer, such as one that is navigating, may be visible
	} else {
		r.tab.Name, r.tab.Active = seen.Name, seen.Visible
	}
	for _, f := range frames {
		fs, detach, err := hiddentab.Attach(ctx, conn, f.TargetID)
		if err != nil {
			miss(state.ComponentSessionStorage, f.URL, err)
			continue
		}
		r.frames(ctx, fs, miss)
		detach()
	}
	if !r.navigated {
		now, err := cdp.Call(ctx, s, page.GetNavigationHistory, cdp.Empty{})
		r.navigated = ctx.Err() == nil && (err != nil || entryID(now) != entryID(history))
	}
	return r
}

// frames reads the storage of every frame of a session's target. It returns the main frame,
// or nil if the page did not answer.
func (r *reading) frames(ctx context.Context, s cdp.Session, miss func(component, origin string, err error)) (top *cdp.Frame) {
	tree, err := cdp.Call(ctx, s, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		miss(state.ComponentSessionStorage, r.tab.URL, err)
		return nil // a page that has not loaded yet does not answer
	}
	awaitCookies(ctx, s)
	var walk func(*page.FrameTree)
	walk = func(t *page.FrameTree) {
		r.areas(ctx, s, t.Frame, miss)
		for _, child := range t.ChildFrames {
			walk(child)
		}
	}
	walk(tree.FrameTree)
	return tree.FrameTree.Frame
}

// scriptPatience is how many milliseconds a script that reads a page may run there. A page can replace
// what the script calls by something that never returns. TabDeadline is much longer.
const scriptPatience runtime.TimeDelta = 1000

// awaitCookies returns when the cookies that a page's scripts have set are in Chrome's network
// process. They go there without an answer, on a connection of each frame: on a busy machine a jar
// that was read right after document.cookie = "…" lacked the cookie (19 of 9000 times). A read of
// document.cookie uses the same connection, so its answer comes after them. It is read in the main
// frame, and in frames of the same origin. A sandboxed document, which has no cookies, throws.
func awaitCookies(ctx context.Context, s cdp.Session) {
	yes := true
	_, _ = cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{ReturnByValue: &yes, ThrowOnSideEffect: &yes, Timeout: scriptPatience,
		Expression: `(() => {
			const cookie = Object.getOwnPropertyDescriptor(Document.prototype, "cookie").get;
			const read = (d) => {
				cookie.call(d);
				for (const f of d.getElementsByTagName("iframe")) if (f.contentDocument) read(f.contentDocument);
			};
			read(document);
		})()`})
}

func (r *reading) areas(ctx context.Context, s cdp.Session, f *cdp.Frame, miss func(component, origin string, err error)) {
	key, err := cdp.Call(ctx, s, storage.GetStorageKey, storage.GetStorageKeyParams{FrameID: f.ID})
	if err != nil && ctx.Err() != nil {
		miss(state.ComponentSessionStorage, f.URL, err)
		return
	}
	if err != nil || !strings.HasPrefix(string(key.StorageKey), "http") {
		return // a frame of another process, read through its own target, or an opaque origin
	}
	if strings.HasSuffix(string(key.StorageKey), inPDFViewer) {
		return
	}
	for _, kind := range []struct {
		component string
		local     bool
		areas     *[]state.Area
	}{{state.ComponentLocalStorage, true, &r.local}, {state.ComponentSessionStorage, false, &r.tab.Session}} {
		k := string(key.StorageKey)
		if slices.ContainsFunc(*kind.areas, func(a state.Area) bool { return a.StorageKey == k }) {
			continue
		}
		res, err := cdp.Call(ctx, s, domstorage.GetDOMStorageItems, domstorage.GetDOMStorageItemsParams{
			StorageID: &domstorage.StorageID{StorageKey: domstorage.SerializedStorageKey(k), IsLocalStorage: kind.local}})
		if err != nil {
			miss(kind.component, k, err)
			continue
		}
		area := state.Area{StorageKey: k, Items: make([]state.Item, 0, len(res.Entries))}
		for _, e := range res.Entries {
			if len(e) == 2 {
				area.Items = append(area.Items, state.Item{Key: e[0], Value: e[1]})
			}
		}
		// An empty area is recorded too: it removes items that an older copy has.
		*kind.areas = append(*kind.areas, area)
	}
}

// pageView is what was read from a page's main frame.
type pageView struct {
	Name    string `json:"name"`
	Visible bool   `json:"visible"`
}

// pageScript uses the document's prototype, because some pages override their own
// document's visibilityState.
const pageScript = `({name: window.name,
	visible: Object.getOwnPropertyDescriptor(Document.prototype, "visibilityState").get.call(document) === "visible"})`

// readView reads the same as readViewIsolated without an isolated world. Each isolated
// world stays in the page for as long as its document lives (190 KB, measured). The script
// runs in the page's own world, and Chrome aborts it before it would run page code with a
// side effect.
func readView(ctx context.Context, s cdp.Session, frame cdp.FrameID) (pageView, error) {
	var seen pageView
	yes := true
	res, err := cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{
		Expression: pageScript, ReturnByValue: &yes, ThrowOnSideEffect: &yes, Timeout: scriptPatience})
	if err != nil && ctx.Err() != nil {
		return seen, err
	}
	if err != nil || res.ExceptionDetails != nil { // the page has overridden what the script reads
		return readViewIsolated(ctx, s, frame)
	}
	return seen, json.Unmarshal(res.Result.Value, &seen)
}

// readViewIsolated reads window.name and the visibility in an isolated world, where the
// page's scripts cannot see or intercept it.
func readViewIsolated(ctx context.Context, s cdp.Session, frame cdp.FrameID) (pageView, error) {
	var seen pageView
	world, err := cdp.Call(ctx, s, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame})
	if err != nil {
		return seen, err
	}
	byValue := true
	res, err := cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{
		Expression:    pageScript,
		ContextID:     world.ExecutionContextID,
		ReturnByValue: &byValue,
	})
	if err != nil {
		return seen, err
	}
	return seen, json.Unmarshal(res.Result.Value, &seen)
}

func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "the page did not answer in time"
	}
	return "the page could not be read: " + fault.CodeOf(err).Text()
}
