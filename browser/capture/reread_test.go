package capture

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/domstorage"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"
)

var (
	errRefused = errors.New("not attached to an active page (-32000)")
	errEnded   = errors.New("the connection to Chrome ended")
)

// fakePage is what a tab shows from a time on.
type fakePage struct {
	from    time.Duration // since the start
	url     string
	moves   bool   // Chrome moves the tab to another process
	refused string // a command that Chrome refuses for another reason
	closed  bool
	writes  bool // its storage changes all the time
}

// fakeChrome answers a reading for its tabs. The answer to Page.getFrameTree takes 10 ms.
type fakeChrome struct {
	Conn
	began    time.Time
	tabs     map[target.ID][]fakePage
	mu       sync.Mutex
	readings map[target.ID]int
	ends     time.Duration // since the start, when Chrome dies; 0: never
}

// shown returns what a tab shows now, and its index.
func (c *fakeChrome) shown(id target.ID) (p fakePage, entry int64) {
	for i, next := range c.tabs[id] {
		if time.Since(c.began) >= next.from {
			p, entry = next, int64(i+1)
		}
	}
	return p, entry
}

func (c *fakeChrome) Hidden(target.ID) bool                   { return false }
func (c *fakeChrome) Temporary(target.ID) bool                { return false }
func (c *fakeChrome) LastShown(id target.ID) int              { return int(id[0]) }
func (c *fakeChrome) CreationOrder(id target.ID) int          { return int(id[0]) }
func (c *fakeChrome) Session(id target.SessionID) cdp.Session { return fakeSession{c, target.ID(id)} }

func (c *fakeChrome) Call(_ context.Context, method string, params, result any) error {
	if c.ends > 0 && time.Since(c.began) >= c.ends && method != storage.GetCookies.Method {
		return errEnded
	}
	switch method {
	case target.GetTargets.Method:
		all := result.(*target.GetTargetsResult)
		for id := range c.tabs {
			if p, _ := c.shown(id); !p.closed {
				all.TargetInfos = append(all.TargetInfos, &target.Info{TargetID: id, Type: "page", URL: p.url})
			}
		}
	case target.AttachToTarget.Method:
		id := params.(target.AttachToTargetParams).TargetID
		if p, _ := c.shown(id); p.closed {
			return errors.New("no target with given id found (-32602)")
		}
		result.(*target.AttachToTargetResult).SessionID = target.SessionID(id)
	}
	return nil
}

// fakeSession is attached to a tab.
type fakeSession struct {
	c  *fakeChrome
	id target.ID
}

func (s fakeSession) Subscribe(string) (<-chan jsonv2.Value, func()) {
	none := make(chan jsonv2.Value)
	close(none)
	return none, func() {}
}

func (s fakeSession) Call(_ context.Context, method string, _, result any) error {
	if method == page.GetFrameTree.Method {
		s.c.mu.Lock()
		s.c.readings[s.id]++
		s.c.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	p, entry := s.c.shown(s.id)
	switch {
	case s.c.ends > 0 && time.Since(s.c.began) >= s.c.ends:
		return errEnded
	case p.moves, p.closed, p.refused == method:
		return errRefused
	}
	switch method {
	case page.GetNavigationHistory.Method:
		result.(*page.GetNavigationHistoryResult).Entries = []*page.NavigationEntry{{ID: entry, URL: p.url}}
	case page.GetFrameTree.Method:
		result.(*page.GetFrameTreeResult).FrameTree = &page.FrameTree{Frame: &cdp.Frame{ID: cdp.FrameID(s.id), URL: p.url}}
	case domstorage.GetDOMStorageItems.Method:
		if p.writes {
			result.(*domstorage.GetDOMStorageItemsResult).Entries = []domstorage.Item{{"now", time.Now().String()}}
		}
	case storage.GetStorageKey.Method:
		result.(*storage.GetStorageKeyResult).StorageKey = storage.SerializedStorageKey(p.url)
	case runtime.Evaluate.Method:
		value, err := json.Marshal(pageView{Visible: true})
		result.(*runtime.EvaluateResult).Result = &runtime.RemoteObject{Value: value}
		return err
	}
	return nil
}

// A tab that navigates while it is read is read again until it shows its page. Other tabs are
// read once, and a save does not wait for what never ends.
func TestReread(t *testing.T) {
	const one, two = "http://one.example/", "http://two.example/"
	for name, c := range map[string]struct {
		tab      []fakePage
		ends     time.Duration
		url      string
		missed   bool
		readings int // 0: as many as fit
		within   time.Duration
	}{
		"a page at rest":                      {tab: []fakePage{{url: one}}, url: one, readings: 1, within: 15 * time.Millisecond},
		"a blank tab without a page":          {tab: []fakePage{{}}, url: blankURL, readings: 1, within: 15 * time.Millisecond},
		"moves when the reading begins":       {tab: []fakePage{{moves: true}, {from: 400 * time.Millisecond, url: two}}, url: two, within: 500 * time.Millisecond},
		"moves during the reading":            {tab: []fakePage{{url: one}, {from: 5 * time.Millisecond, moves: true}, {from: 60 * time.Millisecond, url: two}}, url: two, within: 200 * time.Millisecond},
		"navigates during the reading":        {tab: []fakePage{{url: one}, {from: 5 * time.Millisecond, url: two}}, url: two, readings: 2, within: 100 * time.Millisecond},
		"its first page arrives meanwhile":    {tab: []fakePage{{}, {from: 5 * time.Millisecond, url: two}}, url: two, readings: 2, within: 100 * time.Millisecond},
		"never gets there":                    {tab: []fakePage{{moves: true}}, missed: true, within: unreadDeadline + 100*time.Millisecond},
		"gets there late":                     {tab: []fakePage{{moves: true}, {from: 9 * time.Second, url: two}}, url: two, within: 9200 * time.Millisecond},
		"moves, and does not get there":       {tab: []fakePage{{url: one}, {from: 5 * time.Millisecond, moves: true}}, url: one, missed: true, within: rereadDeadline + 100*time.Millisecond},
		"Chrome refuses its storage":          {tab: []fakePage{{url: one, refused: domstorage.GetDOMStorageItems.Method}}, url: one, missed: true, readings: 1 + rereads, within: time.Second},
		"is closed during the reading":        {tab: []fakePage{{url: one}, {from: 5 * time.Millisecond, closed: true}}, url: one, missed: true, readings: 1, within: 100 * time.Millisecond},
		"Chrome ends when it is to be reread": {tab: []fakePage{{moves: true}}, ends: 20 * time.Millisecond, missed: true, readings: 1, within: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				chrome := &fakeChrome{began: time.Now(), readings: map[target.ID]int{}, ends: c.ends,
					tabs: map[target.ID][]fakePage{"1": c.tab, "0": {{url: "http://rest.example/"}}}}
				doc, err := Read(t.Context(), chrome)
				if err != nil || len(doc.Tabs) != 2 {
					t.Fatalf("%+v, %v", doc, err)
				}
				rest, tab := doc.Tabs[0], doc.Tabs[1]
				if tab.URL != c.url || len(doc.Missed) > 0 != c.missed {
					t.Errorf("the tab is at %q, want %q; missed: %+v", tab.URL, c.url, doc.Missed)
				}
				if !c.missed && (len(tab.Session) != 1 && c.url != blankURL || len(tab.Session) > 0 && tab.Session[0].StorageKey != c.url) {
					t.Errorf("the tab at %s has the storage %+v", c.url, tab.Session)
				}
				if got := chrome.readings["1"]; c.readings > 0 && got != c.readings {
					t.Errorf("it was read %d times, want %d", got, c.readings)
				}
				if got := chrome.readings["0"]; got != 1 {
					t.Errorf("another tab was read %d times", got)
				}
				if rest.Active || !tab.Active {
					t.Errorf("active: %v and %v, want the last tab only", rest.Active, tab.Active)
				}
				if took := time.Since(chrome.began); took > c.within {
					t.Errorf("the reading took %s, want at most %s", took, c.within)
				}
			})
		})
	}
}

// All readings of one save together wait no longer than one.
func TestRereadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chrome := &fakeChrome{began: time.Now(), readings: map[target.ID]int{}, tabs: map[target.ID][]fakePage{"1": {{moves: true}}}}
		p, cancel := newPatience(t.Context())
		defer cancel()
		for range rereads {
			readUntilStable(t.Context(), p, chrome, []*target.Info{{TargetID: "1", Type: "page"}})
		}
		if took := time.Since(chrome.began); took > unreadDeadline+time.Second {
			t.Errorf("the readings took %s", took)
		}
	})
}
