package access

import (
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/quota"
)

// ChangeQuotas changes the quotas of a key in one transaction and returns the key. If change
// returns an error, ChangeQuotas returns that error and nothing changes.
func (k *Keys) ChangeQuotas(ctx context.Context, c Caller, id string, change func(quota.Quotas) (quota.Quotas, error)) (Key, error) {
	if err := c.Require(Administer); err != nil {
		return Key{}, err
	}
	rec, err := k.store.SetKeyQuotas(ctx, id, func(was json.RawMessage) (json.RawMessage, error) {
		now, err := change(quotasOf(was))
		return recordOf(now), err
	})
	if err != nil {
		return Key{}, err
	}
	return k.keyOf(rec), nil
}

// QuotasOf returns the quotas of a key. A deleted key has none. It does not count as a use.
func (k *Keys) QuotasOf(ctx context.Context, id string) (quota.Quotas, error) {
	rec, err := k.store.Key(ctx, id)
	if fault.Is(err, fault.KeyNotFound) {
		err = nil
	}
	return quotasOf(rec.Quotas), err
}

// recordOf returns quotas as a key's record stores them; nil for none.
func recordOf(q quota.Quotas) json.RawMessage {
	if q == (quota.Quotas{}) {
		return nil
	}
	return profiles.JSON(q)
}

// quotasOf is the reverse of recordOf.
func quotasOf(record json.RawMessage) (q quota.Quotas) {
	if len(record) > 0 {
		_ = json.Unmarshal(record, &q) // recordOf wrote it
	}
	return q
}
