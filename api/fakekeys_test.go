package api

import (
	"context"
	"net/netip"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/quota"
)

// fakeKeys knows one key and one ticket.
type fakeKeys struct {
	*failing
	everyUser bool // the key may act for every user
}

func caller() access.Caller {
	return access.Caller{KeyID: "key-1", UserID: "alice", Rights: []access.Right{access.RightUse}}
}

func (f *fakeKeys) Authenticate(_ context.Context, secret string, _ netip.Addr) (access.Caller, error) {
	if secret != goodKey {
		return access.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	c := caller()
	c.AllUsers = f.everyUser
	return c, nil
}

func (f *fakeKeys) NewTicket(context.Context, access.Caller) (string, time.Time, error) {
	return oneTicket, born.Add(time.Minute), f.failure()
}

func (f *fakeKeys) RedeemTicket(_ context.Context, ticket string) (access.Caller, error) {
	if ticket != oneTicket {
		return access.Caller{}, fault.New(fault.Unauthorized, "fake", "")
	}
	return caller(), nil
}

func (f *fakeKeys) CreateKey(_ context.Context, _ access.Caller, o access.KeyOptions) (access.Key, string, error) {
	return access.Key{ID: "key-2", Name: o.Name, UserID: o.UserID, AllUsers: o.AllUsers, Rights: o.Rights, CreatedAt: born.UTC(), Networks: []string{}}, "sk-new", f.failure()
}

func (f *fakeKeys) RotateKey(_ context.Context, _ access.Caller, id string, overlap time.Duration) (access.Key, string, error) {
	until := born.Add(overlap).UTC()
	return access.Key{ID: id, Name: "ci", UserID: "default", Rights: access.Rights(), CreatedAt: born.UTC(), Networks: []string{}, FormerSecretUntil: &until}, "sk-newer", f.failure()
}

func (f *fakeKeys) Keys(context.Context, access.Caller) ([]access.Key, error) {
	return []access.Key{{ID: "key-1", Name: "first", UserID: "default", AllUsers: true, Rights: access.Rights(), CreatedAt: born.UTC(), Networks: []string{}}}, f.failure()
}

func (f *fakeKeys) ChangeQuotas(_ context.Context, _ access.Caller, id string, change func(quota.Quotas) (quota.Quotas, error)) (access.Key, error) {
	sessions := int64(2)
	quotas, err := change(quota.Quotas{Sessions: &sessions})
	if err != nil {
		return access.Key{}, err
	}
	return access.Key{ID: id, Name: "ci", UserID: "default", Rights: access.Rights(), CreatedAt: born.UTC(), Networks: []string{}, Quotas: quotas}, f.failure()
}

func (f *fakeKeys) DeleteKey(context.Context, access.Caller, string) error { return f.failure() }
