package session

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// A key that spends none of its tickets does not keep others from theirs.
func TestTicketsOfAnotherKey(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	var err error
	for made := 0; err == nil; made++ {
		if made > 100_000 {
			t.Fatal("there is no bound")
		}
		_, _, err = r.apiKeys.NewTicket(ctx, alice)
	}
	wantCode(t, err, fault.TooManySessions)
	if _, _, err := r.apiKeys.NewTicket(ctx, bob); err != nil {
		t.Errorf("another key's ticket: %v", err)
	}
	r.clock.add(time.Minute)
	if _, _, err := r.apiKeys.NewTicket(ctx, alice); err != nil {
		t.Errorf("once they have expired: %v", err)
	}
}

func TestIsTicket(t *testing.T) {
	once, _, err := newRig(t, nil).apiKeys.NewTicket(t.Context(), alice)
	if err != nil {
		t.Fatal(err)
	}
	l := &live{ticketSecret: newTicketSecret()}
	for text, want := range map[string]bool{once: true, l.ticketFor(PurposeView, "first"): true, l.ticketFor(PurposeCDP, profiles.NewID()): true,
		"": false, "guess": false, access.NewSecret(): false, once[1:]: false, once + "A": false} {
		if access.IsTicket(text) != want {
			t.Errorf("IsTicket(%q) is %v", text, !want)
		}
	}
}
