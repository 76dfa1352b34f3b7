package logincheck

import (
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
)

// stillLooks is how many looks in a row must show the same before a page is
// taken to have come to rest: with checkPause between them, two seconds or more.
const stillLooks = 40

// Rest is how long a page must show the same before it is taken to have come to rest.
const Rest = stillLooks * checkPause

// traffic is what a page has under way with its site. A WebSocket that is open
// and a request that is not answered may change the page at any time.
type traffic struct {
	open  map[network.RequestID]cdp.LoaderID // by the document that asked
	count int                                // of all that was ever begun
}

func (t *traffic) began(id network.RequestID, document cdp.LoaderID) {
	if t.open == nil {
		t.open = map[network.RequestID]cdp.LoaderID{}
	}
	t.open[id] = document
	t.count++
}

func (t *traffic) ended(id network.RequestID) { delete(t.open, id) }

// replaced forgets what documents before this one had asked for: those of
// another process may have gone without a word.
func (t *traffic) replaced(by cdp.LoaderID) {
	for id, document := range t.open {
		if document != by && document != "" {
			delete(t.open, id)
		}
	}
}

// stillness tells when a page has come to rest: it is loaded, has nothing under
// way, and neither asks for anything nor changes for a while.
type stillness struct {
	last  restingAt
	looks int
}

// restingAt is what must stay the same.
type restingAt struct {
	url             string
	elements, count int
}

// look takes what a look shows, and reports whether the page rests.
func (s *stillness) look(seen sight, open, count int) bool {
	now := restingAt{seen.URL, seen.Elements, count}
	if !seen.Loaded || open > 0 || now != s.last {
		s.last, s.looks = now, 0
		return false
	}
	s.looks++
	return s.looks >= stillLooks
}
