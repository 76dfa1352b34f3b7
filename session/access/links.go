package access

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// The limits of shared links.
const (
	ShortestLink = time.Minute
	LongestLink  = 7 * 24 * time.Hour
	maxLinks     = 32 // of one session
)

// Link describes a shared link: an address of the live view that expires and can be revoked.
// It ends with its session, with the key that made it, at ExpiresAt, or when it is revoked.
type Link struct {
	ID        string
	Control   bool // else it is for viewing only
	ExpiresAt time.Time
	Viewers   int // who use it now
	keyID     string
}

// purpose returns the purpose of the link's ticket.
func (l Link) purpose() Purpose {
	if l.Control {
		return PurposeSharedControl
	}
	return PurposeSharedView
}

// needs returns the permission that a caller needs to make the link: that of the address
// that works until the session ends.
func (l Link) needs() Permission {
	if l.Control {
		return Drive
	}
	return Look
}

// links are the shared links of one live session. They are in memory only. The methods are
// safe for concurrent use.
type links struct {
	now func() time.Time

	mu   sync.Mutex
	byID map[string]*sharedLink
}

// sharedLink is a link and what is open through it. That is ended when the link ends.
type sharedLink struct {
	Link
	open map[*connection]bool // true: a viewer, false: a call
}

func newLinks(now func() time.Time) *links {
	return &links{now: now, byID: map[string]*sharedLink{}}
}

// add makes a link.
func (s *links) add(keyID string, control bool, life time.Duration) (Link, error) {
	if life < ShortestLink || life > LongestLink {
		return Link{}, fault.New(fault.InvalidField, "access.share", "expires_in_seconds: must be from %d to %d", int(ShortestLink.Seconds()), int(LongestLink.Seconds()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	if len(s.byID) >= maxLinks {
		return Link{}, fault.New(fault.TooManyLinks, "access.share", "the session has %d shared links, which is the limit; revoke one", maxLinks)
	}
	made := Link{ID: profiles.NewID(), Control: control, ExpiresAt: s.now().Add(life).UTC(), keyID: keyID}
	s.byID[made.ID] = &sharedLink{Link: made, open: map[*connection]bool{}}
	return made, nil
}

// find returns a link that has not ended.
func (s *links) find(id string) (_ Link, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	found := s.byID[id]
	if found == nil {
		return Link{}, false
	}
	return found.described(), true
}

// all returns the links that have not ended, oldest first.
func (s *links) all() []Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	list := make([]Link, 0, len(s.byID))
	for _, l := range s.byID {
		list = append(list, l.described())
	}
	slices.SortFunc(list, func(a, b Link) int { return cmp.Compare(a.ID, b.ID) }) // IDs begin with the time
	return list
}

// remove ends a link and what is open through it.
func (s *links) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byID[id]; l != nil {
		s.end(l)
	}
}

// join adds a viewer, or a call, to a link until leave is called. When the link ends, end is
// called; it must not block. ok is false if the link has ended.
func (s *links) join(id string, viewer bool, end func()) (_ Link, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropExpired()
	l := s.byID[id]
	if l == nil {
		return Link{}, nil, false
	}
	one := &connection{func(error) { end() }}
	l.open[one] = viewer
	expiry := time.AfterFunc(l.ExpiresAt.Sub(s.now()), func() { s.remove(id) })
	return l.described(), func() {
		expiry.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(l.open, one)
	}, true
}

// dropExpired ends the links whose time is over. The caller holds the lock.
func (s *links) dropExpired() {
	now := s.now()
	for _, l := range s.byID {
		if !now.Before(l.ExpiresAt) {
			s.end(l)
		}
	}
}

// end ends a link and what is open through it. The caller holds the lock.
func (s *links) end(l *sharedLink) {
	delete(s.byID, l.ID)
	for one := range l.open {
		one.end(nil)
	}
	clear(l.open)
}

// described returns the link as it is now. The caller holds the lock.
func (l *sharedLink) described() Link {
	now := l.Link
	for _, viewer := range l.open {
		if viewer {
			now.Viewers++
		}
	}
	return now
}
