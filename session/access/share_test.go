package access

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stasisd/stasis/fault"
)

// sharing is a live session "s" of alice, its tickets, and who may share it.
type sharing struct {
	live    *LiveSession
	keys    callers
	tickets *TicketHolders
	all     liveSessions
}

var (
	owner  = Caller{KeyID: "key-a", UserID: "alice", Rights: []Right{RightUse}}
	looker = Caller{KeyID: "key-l", UserID: "alice", Rights: []Right{RightView}}
)

func newSharing() sharing {
	s := sharing{live: NewLiveSession("s", "alice", "key-a", time.Now), keys: callers{owner.KeyID: owner, looker.KeyID: looker}}
	s.all = liveSessions{"s": s.live, "other": NewLiveSession("other", "alice", "key-a", time.Now)}
	s.tickets = NewTicketHolders(s.keys, s.all, time.Now)
	return s
}

func (s sharing) share(t *testing.T, c Caller, control bool, life time.Duration) (Link, string) {
	t.Helper()
	link, ticket, err := s.live.Share(t.Context(), s.keys, c, control, life)
	if err != nil {
		t.Fatal(err)
	}
	return link, ticket
}

// opens returns what a ticket opens in a session.
func (s sharing) opens(t *testing.T, ticket, session string) (opens []Purpose) {
	t.Helper()
	for _, p := range []Purpose{PurposeCDP, PurposeView, PurposeControl, PurposeSave, PurposeSharedView, PurposeSharedControl} {
		_, err := s.tickets.AuthorizeTicket(t.Context(), ticket, session, p)
		if err != nil && !fault.Is(err, fault.Unauthorized) {
			t.Fatal(err)
		}
		if err == nil {
			opens = append(opens, p)
		}
	}
	return opens
}

// A shared link opens the live view for what it was made for, and nothing else. Its caller
// cannot make, list or revoke links.
func TestSharedLinkOpensOnlyTheLiveView(t *testing.T) {
	s := newSharing()
	for _, control := range []bool{false, true} {
		link, ticket := s.share(t, owner, control, time.Hour)
		if got := s.opens(t, ticket, "s"); len(got) != 1 || got[0] != link.purpose() || !IsTicket(ticket) {
			t.Errorf("control %v: opens %v", control, got)
		}
		if got := s.opens(t, ticket, "other"); got != nil {
			t.Errorf("control %v: opens %v of another session", control, got)
		}
		c, err := s.tickets.AuthorizeTicket(t.Context(), ticket, "s", link.purpose())
		if err != nil || c.Link != link.ID || c.KeyID != owner.KeyID || c.May(Drive) != control || !c.May(Look) {
			t.Errorf("control %v: %+v, %v", control, c, err)
		}
		_, _, err = s.live.Share(t.Context(), s.keys, c, false, time.Hour)
		_, listed := s.live.Shared(t.Context(), s.keys, c)
		for what, err := range map[string]error{"share": err, "list": listed, "revoke": s.live.Revoke(c, link.ID)} {
			if !fault.Is(err, fault.Forbidden) {
				t.Errorf("control %v, %s: %v", control, what, err)
			}
		}
	}
}

// A link expires at its time, and its viewers are ended then. One that left before is not.
func TestSharedLinkExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing()
		link, ticket := s.share(t, owner, false, time.Minute)
		c, err := s.tickets.AuthorizeTicket(t.Context(), ticket, "s", PurposeSharedView)
		if err != nil {
			t.Fatal(err)
		}
		var ended atomic.Int32
		_, leave, err := s.live.JoinLink(c, func() { t.Error("a viewer that had left was ended") })
		if err != nil {
			t.Fatal(err)
		}
		leave()
		joined, leave, err := s.live.JoinLink(c, func() { ended.Add(1) })
		if err != nil || joined.ExpiresAt != link.ExpiresAt {
			t.Fatal(joined, err)
		}
		defer leave()
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if list, err := s.live.Shared(t.Context(), s.keys, owner); err != nil || len(list) != 1 || list[0].Viewers != 1 || ended.Load() != 0 {
			t.Errorf("before: %+v, %v; %d ended", list, err, ended.Load())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if list, err := s.live.Shared(t.Context(), s.keys, owner); err != nil || len(list) != 0 || ended.Load() != 1 {
			t.Errorf("after: %+v, %v; %d ended", list, err, ended.Load())
		}
		if got := s.opens(t, ticket, "s"); got != nil {
			t.Errorf("an expired link opens %v", got)
		}
		if _, _, err := s.live.JoinLink(c, func() {}); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("a viewer that joined too late: %v", err)
		}
	})
}

// A revoked link ends with its viewers, and others stay. A caller who may only look revokes
// only its own links, and makes none with control.
func TestSharedLinkIsRevoked(t *testing.T) {
	s := newSharing()
	first, ticket := s.share(t, owner, true, time.Hour)
	_, others := s.share(t, owner, true, time.Hour)
	own, _ := s.share(t, looker, false, time.Hour)
	ended := 0
	if _, _, err := s.live.JoinLink(Caller{Link: first.ID}, func() { ended++ }); err != nil {
		t.Fatal(err)
	}
	if err := s.live.Revoke(looker, first.ID); !fault.Is(err, fault.Forbidden) || ended != 0 {
		t.Errorf("by a key that may only look: %v", err)
	}
	if err := s.live.Revoke(looker, own.ID); err != nil {
		t.Error(err)
	}
	if _, _, err := s.live.Share(t.Context(), s.keys, looker, true, time.Hour); !fault.Is(err, fault.Forbidden) {
		t.Errorf("control from a key that may only look: %v", err)
	}
	if err := s.live.Revoke(owner, first.ID); err != nil || ended != 1 {
		t.Errorf("%v; %d viewers ended", err, ended)
	}
	if err := s.live.Revoke(owner, first.ID); !fault.Is(err, fault.LinkNotFound) {
		t.Errorf("a second time: %v", err)
	}
	if got := s.opens(t, ticket, "s"); got != nil {
		t.Errorf("a revoked link opens %v", got)
	}
	if got := s.opens(t, others, "s"); len(got) != 1 {
		t.Errorf("another link opens %v", got)
	}
}

// A link ends with its key and with its session, and gives no more than its key has.
func TestSharedLinkEndsWithItsKeyAndSession(t *testing.T) {
	s := newSharing()
	_, ticket := s.share(t, owner, true, time.Hour)
	s.keys[owner.KeyID] = Caller{KeyID: owner.KeyID, UserID: "alice", Rights: []Right{RightView}}
	if got := s.opens(t, ticket, "s"); got != nil {
		t.Errorf("with control, of a key that may only look: opens %v", got)
	}
	delete(s.keys, owner.KeyID)
	if got := s.opens(t, ticket, "s"); got != nil {
		t.Errorf("of a deleted key: opens %v", got)
	}
	if list, err := s.live.Shared(t.Context(), s.keys, looker); err != nil || len(list) != 0 {
		t.Errorf("of a deleted key: %+v, %v", list, err)
	}
	s.keys[owner.KeyID] = owner
	_, ticket = s.share(t, owner, true, time.Hour)
	s.all["s"] = NewLiveSession("s", "alice", "key-a", time.Now) // resumed
	if got := s.opens(t, ticket, "s"); got != nil {
		t.Errorf("of an ended session: opens %v", got)
	}
}

// A session has a bounded number of links, and their lives are bounded.
func TestSharedLinksAreBounded(t *testing.T) {
	s := newSharing()
	for _, life := range []time.Duration{0, time.Minute - 1, 7*24*time.Hour + 1} {
		if _, _, err := s.live.Share(t.Context(), s.keys, owner, false, life); !fault.Is(err, fault.InvalidField) {
			t.Errorf("%v: %v", life, err)
		}
	}
	for range maxLinks {
		s.share(t, owner, false, time.Hour)
	}
	if _, _, err := s.live.Share(t.Context(), s.keys, owner, false, time.Hour); !fault.Is(err, fault.TooManyLinks) {
		t.Errorf("one too many: %v", err)
	}
	delete(s.keys, owner.KeyID) // its links take no room from others
	s.share(t, looker, false, time.Hour)
}

// The ticket of agent_url saves the session, and for an hour also asks for what became of it.
// Nobody else's ticket does, nor does one of a session that was not saved with it.
func TestSaveAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSharing()
		saves := func(session string, p Purpose) bool {
			_, err := s.tickets.AuthorizeTicket(t.Context(), s.all[session].Tickets(owner)[p], session, PurposeSave)
			return err == nil
		}
		if saves("s", PurposeView) || saves("s", PurposeCDP) || !saves("s", PurposeControl) {
			t.Error("the live session")
		}
		time.Sleep(saveAgain - time.Minute)
		if !saves("s", PurposeControl) { // the first save has failed
			t.Error("a second save")
		}
		ticket, other := s.live.Tickets(owner)[PurposeControl], s.all["other"].Tickets(owner)[PurposeControl]
		delete(s.all, "s")
		delete(s.all, "other")
		if got := s.opens(t, ticket, "s"); len(got) != 1 || got[0] != PurposeSave {
			t.Errorf("after the end: opens %v", got)
		}
		if got := s.opens(t, other, "other"); got != nil {
			t.Errorf("after another end: opens %v", got)
		}
		time.Sleep(saveAgain - time.Nanosecond)
		if got := s.opens(t, ticket, "s"); len(got) != 1 {
			t.Errorf("within the hour: opens %v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := s.opens(t, ticket, "s"); got != nil {
			t.Errorf("an hour later: opens %v", got)
		}
	})
}
