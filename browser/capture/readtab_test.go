package capture

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// slowChrome answers each command to a page late.
type slowChrome struct {
	*fakeChrome
	late time.Duration
}

func (c slowChrome) Session(id target.SessionID) cdp.Session {
	return slowSession{c.fakeChrome.Session(id), c.late}
}

type slowSession struct {
	cdp.Session
	late time.Duration
}

func (s slowSession) Call(ctx context.Context, method string, params, result any) error {
	select {
	case <-time.After(s.late):
		return s.Session.Call(ctx, method, params, result)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A tab whose answers take long together is read. One that does not answer is not asked again,
// and many slow tabs end with the time for all.
func TestReadTabsOfSlowPages(t *testing.T) {
	for name, test := range map[string]struct {
		late, want time.Duration
		tabs       int
		missed     bool
		writes     bool
	}{
		"slow":      {late: time.Second, tabs: 1},
		"silent":    {late: time.Hour, tabs: 8, want: TabDeadline, missed: true},
		"many":      {late: 4 * time.Second, tabs: 9, want: tabsDeadline, missed: true},
		"many fast": {late: time.Millisecond, tabs: 40},
		"writing":   {late: time.Second, tabs: 2, writes: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := slowChrome{&fakeChrome{began: time.Now(), tabs: map[target.ID][]fakePage{}, readings: map[target.ID]int{}}, test.late}
				for i := range test.tabs {
					id, url := target.ID(rune('a'+i)), "https://a.example/"
					c.tabs[id] = []fakePage{{url: url, writes: test.writes}}
				}
				doc, err := Read(t.Context(), c)
				if missed := len(doc.Missed) > 0; err != nil || missed != test.missed || len(doc.Tabs) != test.tabs {
					t.Errorf("%d tabs, missed: %+v, %v", len(doc.Tabs), doc.Missed, err)
				}
				if took := time.Since(c.began); test.want > 0 && took != test.want || took > tabsDeadline {
					t.Errorf("it took %v, want %v", took, test.want)
				}
			})
		})
	}
}
