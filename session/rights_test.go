package session

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// A ticket is valid for one session, purpose and key, with the key's current rights.
func TestTicketsOfSessions(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	k, secret, err := r.apiKeys.CreateKey(ctx, admin, access.KeyOptions{Name: "ci", UserID: "alice", Rights: []access.Right{access.RightUse, access.RightSecrets}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.apiKeys.Authenticate(ctx, secret, netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := r.Create(ctx, c, newCreate(nil))
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.Create(ctx, c, newCreate(nil))
	if err != nil {
		t.Fatal(err)
	}
	drives, views := one.Tickets[access.PurposeCDP], one.Tickets[access.PurposeView]
	if again, err := r.Get(ctx, c, one.ID); err != nil || again.Tickets[access.PurposeCDP] != drives || again.Tickets[access.PurposeView] != views {
		t.Errorf("tickets change: %v, %v", again.Tickets, err)
	}
	if hers, err := r.Get(ctx, alice, one.ID); err != nil || hers.Tickets[access.PurposeCDP] == drives || hers.Tickets[access.PurposeCDP] == "" {
		t.Errorf("another key's tickets: %v, %v", hers.Tickets, err)
	}
	if got, err := r.AuthorizeTicket(ctx, drives, one.ID, access.PurposeCDP); err != nil || got.KeyID != k.ID {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := r.AuthorizeTicket(ctx, views, one.ID, access.PurposeView)
	if err != nil || !slices.Equal(got.Rights, []access.Right{access.RightView}) || got.ForEveryUser() {
		t.Errorf("a view ticket allows %+v, %v", got, err)
	}
	refused := func(ticket, id string, p access.Purpose) {
		t.Helper()
		_, err := r.AuthorizeTicket(ctx, ticket, id, p)
		wantCode(t, err, fault.Unauthorized)
	}
	refused(views, one.ID, access.PurposeCDP)
	refused(drives, one.ID, access.PurposeView)
	refused(drives, two.ID, access.PurposeCDP)
	refused(drives[:access.RandomLength]+"-key-a", one.ID, access.PurposeCDP)
	refused("", one.ID, access.PurposeCDP)
	refused("-"+k.ID, one.ID, access.PurposeCDP)
	refused(drives, one.ID, "control")

	once, _, err := r.apiKeys.NewTicket(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.apiKeys.DeleteKey(ctx, admin, k.ID); err != nil {
		t.Fatal(err)
	}
	refused(drives, one.ID, access.PurposeCDP)
	refused(views, one.ID, access.PurposeView)
	_, err = r.apiKeys.RedeemTicket(ctx, once)
	wantCode(t, err, fault.Unauthorized)
	_, err = r.Create(ctx, c, newCreate(nil)) // with a caller that was authenticated just before
	wantCode(t, err, fault.Unauthorized)
}
