package access

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
)

// A ticket acts with its key's current rights. A ticket to view gives no other right.
func TestAuthorizeTicket(t *testing.T) {
	owner := Caller{KeyID: "key-a", UserID: "alice", Rights: []Right{RightUse}}
	live := NewLiveSession("s", "alice", "key-a", time.Now)
	sessions := liveSessions{"s": live}
	tickets := NewTicketHolders(callers{owner.KeyID: owner}, sessions, time.Now)
	own := live.Tickets(owner)
	if c, err := tickets.AuthorizeTicket(t.Context(), own[PurposeCDP], "s", PurposeCDP); err != nil || c.KeyID != owner.KeyID || !c.May(Drive) {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := tickets.AuthorizeTicket(t.Context(), own[PurposeView], "s", PurposeView); err != nil || c.May(Drive) || !c.May(Look) {
		t.Errorf("view ticket: %+v, %v", c, err)
	}
	refused := func(what, ticket, id string, p Purpose) {
		t.Helper()
		if _, err := tickets.AuthorizeTicket(t.Context(), ticket, id, p); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another purpose", own[PurposeView], "s", PurposeCDP)
	refused("another session", own[PurposeCDP], "other", PurposeCDP)
	refused("a deleted key", live.Tickets(Caller{KeyID: "gone", UserID: "alice", Rights: owner.Rights})[PurposeCDP], "s", PurposeCDP)
	delete(sessions, "s")
	refused("an ended session", own[PurposeCDP], "s", PurposeCDP)
}

type callers map[string]Caller

func (k callers) Caller(_ context.Context, id string) (Caller, error) {
	if c, ok := k[id]; ok {
		return c, nil
	}
	return Caller{}, fault.New(fault.Unauthorized, "test", "there is no such key")
}

type liveSessions map[string]*LiveSession

func (l liveSessions) Rights(id string) *LiveSession { return l[id] }
