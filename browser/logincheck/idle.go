package logincheck

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
)

// idleLooks is the number of equal looks in a row after which a page counts as idle:
// with checkPause between them, two seconds or more.
const idleLooks = 40

// IdleTime is how long a page must look the same to count as idle.
const IdleTime = idleLooks * checkPause

// traffic counts a page's open requests. An open WebSocket and an unanswered request may
// change the page at any time.
type traffic struct {
	open  map[network.RequestID]cdp.LoaderID // by the document that made the request
	count int                                // number of all requests so far
}

func (t *traffic) began(id network.RequestID, document cdp.LoaderID) {
	if t.open == nil {
		t.open = map[network.RequestID]cdp.LoaderID{}
	}
	t.open[id] = document
	t.count++
}

func (t *traffic) ended(id network.RequestID) { delete(t.open, id) }

// replaced forgets the requests of documents before this one. Chrome may have sent no end
// event for those of another process.
func (t *traffic) replaced(by cdp.LoaderID) {
	for id, document := range t.open {
		if document != by && document != "" {
			delete(t.open, id)
		}
	}
}

// idleDetector detects when a page is idle: it is loaded, has no open request, and for a
// while neither makes a request nor changes.
type idleDetector struct {
	last  pageState
	looks int
}

// pageState is what must stay the same.
type pageState struct {
	url             string
	elements, count int
}

// look records what a look shows, and reports whether the page is idle.
func (s *idleDetector) look(seen observation, open, count int) bool {
	now := pageState{seen.URL, seen.Elements, count}
	if !seen.Loaded || open > 0 || now != s.last {
		s.last, s.looks = now, 0
		return false
	}
	s.looks++
	return s.looks >= idleLooks
}
