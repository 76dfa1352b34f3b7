package access

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// A key with too many unspent tickets does not take them from other keys.
func TestTicketsOfAnotherKey(t *testing.T) {
	keys, ctx := newKeys(t), t.Context()
	at := time.Unix(1_800_000_000, 0)
	keys.tickets.now = func() time.Time { return at }
	alice, bob := Caller{KeyID: "key-a", UserID: "alice", Rights: []Right{RightUse}}, Caller{KeyID: "key-b", UserID: "bob", Rights: []Right{RightUse}}
	var err error
	for made := 0; err == nil; made++ {
		if made > 100_000 {
			t.Fatal("the number of tickets is not bounded")
		}
		_, _, err = keys.NewTicket(ctx, alice)
	}
	if !fault.Is(err, fault.TooManySessions) {
		t.Errorf("too many tickets: %v", err)
	}
	if _, _, err := keys.NewTicket(ctx, bob); err != nil {
		t.Errorf("another key's ticket: %v", err)
	}
	at = at.Add(time.Minute)
	if _, _, err := keys.NewTicket(ctx, alice); err != nil {
		t.Errorf("after they expired: %v", err)
	}
}

func TestIsTicket(t *testing.T) {
	once, _, err := newKeys(t).NewTicket(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	session := NewSessionTickets()
	for text, want := range map[string]bool{once: true, session.Make(PurposeView, "first"): true, session.Make(PurposeCDP, profiles.NewID()): true,
		"": false, "guess": false, NewSecret(): false, once[1:]: false, once + "A": false} {
		if IsTicket(text) != want {
			t.Errorf("IsTicket(%q) is %v", text, !want)
		}
	}
}

// A session's ticket is valid for one key, one purpose and one session.
func TestSessionTickets(t *testing.T) {
	one, other := NewSessionTickets(), NewSessionTickets()
	all := one.MakeAll("key-a", func(p Permission) error {
		if p != Look {
			return fault.New(fault.Forbidden, "test", "")
		}
		return nil
	})
	view := all[PurposeView]
	if len(all) != 1 || view != one.Make(PurposeView, "key-a") {
		t.Errorf("%v", all)
	}
	if keyID, needs, ok := one.Key(view, PurposeView); keyID != "key-a" || needs != Look || !ok {
		t.Errorf("%q, %q, %t", keyID, needs, ok)
	}
	for name, ok := range map[string]bool{
		"another session": taken(other.Key(view, PurposeView)),
		"another purpose": taken(one.Key(view, PurposeCDP)),
		"another key":     taken(one.Key(view+"b", PurposeView)),
		"no ticket":       taken(one.Key("", PurposeView)),
	} {
		if ok {
			t.Errorf("ticket accepted for %s", name)
		}
	}
}

func taken(_ string, _ Permission, ok bool) bool { return ok }
