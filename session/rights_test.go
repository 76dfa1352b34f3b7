package session

import (
	"slices"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// A ticket is for one session, purpose and key, as the key is now.
func TestTicketsOfSessions(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	k, secret, err := r.apiKeys.CreateKey(ctx, admin, "ci", "alice", false, []access.Right{access.RightUse, access.RightSecrets})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.apiKeys.Authenticate(ctx, secret)
	if err != nil {
		t.Fatal(err)
	}
	one, err := r.Create(ctx, c, asking(nil))
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.Create(ctx, c, asking(nil))
	if err != nil {
		t.Fatal(err)
	}
	drives, views := one.Tickets[PurposeCDP], one.Tickets[PurposeView]
	if again, err := r.Get(ctx, c, one.ID); err != nil || again.Tickets[PurposeCDP] != drives || again.Tickets[PurposeView] != views {
		t.Errorf("tickets change: %v, %v", again.Tickets, err)
	}
	if hers, err := r.Get(ctx, alice, one.ID); err != nil || hers.Tickets[PurposeCDP] == drives || hers.Tickets[PurposeCDP] == "" {
		t.Errorf("another key's tickets: %v, %v", hers.Tickets, err)
	}
	if got, err := r.AuthorizeTicket(ctx, drives, one.ID, PurposeCDP); err != nil || got.KeyID != k.ID {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := r.AuthorizeTicket(ctx, views, one.ID, PurposeView)
	if err != nil || !slices.Equal(got.Rights, []access.Right{access.RightView}) || got.ForEveryUser() {
		t.Errorf("who looks may %+v, %v", got, err)
	}
	refused := func(ticket, id string, p Purpose) {
		t.Helper()
		_, err := r.AuthorizeTicket(ctx, ticket, id, p)
		wantCode(t, err, fault.Unauthorized)
	}
	refused(views, one.ID, PurposeCDP)
	refused(drives, one.ID, PurposeView)
	refused(drives, two.ID, PurposeCDP)
	refused(drives[:access.RandomLength]+"-key-a", one.ID, PurposeCDP)
	refused("", one.ID, PurposeCDP)
	refused("-"+k.ID, one.ID, PurposeCDP)
	refused(drives, one.ID, "control")

	once, _, err := r.apiKeys.NewTicket(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.apiKeys.DeleteKey(ctx, admin, k.ID); err != nil {
		t.Fatal(err)
	}
	refused(drives, one.ID, PurposeCDP)
	refused(views, one.ID, PurposeView)
	_, err = r.apiKeys.RedeemTicket(ctx, once)
	wantCode(t, err, fault.Unauthorized)
	_, err = r.Create(ctx, c, asking(nil)) // one that was authenticated just before
	wantCode(t, err, fault.Unauthorized)
}
