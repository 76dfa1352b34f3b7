package pageevent

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// Pages and downloads whose end was lost, because too many events arrived at once, are
// removed anyway.
func TestPagesWithLostEndAreRemoved(t *testing.T) {
	l := New(nil, nil, time.Now)
	for n := range 3 * maxReceived {
		l.Receive(mux.PageEvent{Method: target.TargetCreated.Method, Target: fmt.Sprint(n), URL: "https://a.example/"})
		l.Receive(mux.PageEvent{Method: browser.DownloadWillBegin.Method, Params: fmt.Appendf(nil, `{"guid":"%d","suggestedFilename":"f"}`, n)})
		l.take()
	}
	if len(l.pages) > maxReceived || len(l.downloads) > maxReceived {
		t.Errorf("%d pages and %d downloads are still recorded", len(l.pages), len(l.downloads))
	}
}

// The end of a download says why the daemon cancelled it. A download that is complete all
// the same, or that a client cancelled, has no reason. Each event comes from two sessions.
func TestReasonOfACancelledDownload(t *testing.T) {
	var got []map[string]any
	l := New(func(e Event) { got = append(got, e.Data) }, nil, time.Now)
	event := func(method, params string) {
		for _, peer := range []string{"daemon", "client"} {
			l.Receive(mux.PageEvent{Method: method, Peer: peer, Params: []byte(params)})
		}
	}
	for _, guid := range []string{"a", "b", "c"} {
		event(browser.DownloadWillBegin.Method, `{"guid":"`+guid+`","suggestedFilename":"f"}`)
	}
	for _, guid := range []string{"a", "b", "unknown"} {
		event(mux.DownloadsExceeded, `{"guid":"`+guid+`"}`)
	}
	event(browser.DownloadProgress.Method, `{"guid":"a","state":"canceled"}`)
	event(browser.DownloadProgress.Method, `{"guid":"b","state":"completed","receivedBytes":1}`)
	event(browser.DownloadProgress.Method, `{"guid":"c","state":"canceled"}`)
	l.take()
	l.report(t.Context(), true)
	want := []map[string]any{
		{"state": "canceled", "guid": "a", "name": "f", "bytes": int64(0), "reason": "the session's downloads exceed --max-downloads"},
		{"state": "completed", "guid": "b", "name": "f", "bytes": int64(1)},
		{"state": "canceled", "guid": "c", "name": "f", "bytes": int64(0)},
	}
	if len(got) != 3+len(want) {
		t.Fatalf("%v", got)
	}
	for i, w := range want {
		if !maps.Equal(got[3+i], w) {
			t.Errorf("got %v, want %v", got[3+i], w)
		}
	}
}

// titled answers Target.getTargetInfo with a title from a time on, and not at all before
// another time.
type titled struct {
	cdp.Session
	from, answers time.Time
	asked         int
}

func (s *titled) Call(ctx context.Context, _ string, _, result any) error {
	s.asked++
	if time.Now().Before(s.answers) {
		<-ctx.Done()
		return ctx.Err()
	}
	info := &target.Info{URL: "https://a.example/"}
	if !time.Now().Before(s.from) {
		info.Title = "here"
	}
	result.(*target.GetTargetInfoResult).TargetInfo = info
	return nil
}

// A navigation is reported when the page has a title, also one that loads slowly, and without
// one after a time.
func TestTitleOfASlowPage(t *testing.T) {
	for name, c := range map[string]struct {
		from, answers, reported time.Duration
		title                   any
		asked                   int
		another                 bool // an event that comes after it
	}{
		"at once":                      {0, 0, settleTime, "here", 1, true},
		"late":                         {1200 * time.Millisecond, 0, 1500 * time.Millisecond, "here", 3, false},
		"late, and another event":      {1200 * time.Millisecond, 0, settleTime, nil, 1, true},
		"never":                        {time.Hour, 0, titleTime, nil, 6, false},
		"a late answer":                {0, time.Second, 2*settleTime + titleDeadline, "here", 2, false},
		"no answer":                    {0, time.Hour, titleTime, nil, 2, false},
		"no answer, and another event": {0, time.Hour, settleTime + titleDeadline, nil, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				chrome := &titled{from: began.Add(c.from), answers: began.Add(c.answers)}
				reported := make(chan Event, 2)
				ctx, end := context.WithCancel(t.Context())
				l := New(func(e Event) { reported <- e }, chrome, time.Now)
				go l.Run(ctx)
				l.Receive(mux.PageEvent{Method: target.TargetInfoChanged.Method, Target: "1", URL: "https://a.example/"})
				if c.another {
					l.Receive(mux.PageEvent{Method: target.TargetCrashed.Method, Target: "1", URL: "https://a.example/"})
				}
				if e := <-reported; e.Kind != Navigation || e.Data["title"] != c.title || time.Since(began) != c.reported || chrome.asked != c.asked {
					t.Errorf("%+v after %s and %d requests, want the title %v after %s and %d", e, time.Since(began), chrome.asked, c.title, c.reported, c.asked)
				}
				if c.another {
					if e := <-reported; e.Kind != Crash {
						t.Errorf("then %+v", e)
					}
				}
				end()
			})
		})
	}
}
