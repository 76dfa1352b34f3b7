package profilestest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

func testKeys(f *fixture) {
	a := profiles.Key{
		ID: "b", Name: "first", UserID: "user", AllUsers: true, Hash: [32]byte{1, 31: 255}, CreatedAt: start,
		Rights: []string{"use", "secrets", "admin"}, ExpiresAt: start.Add(time.Hour), Networks: []string{"192.0.2.0/24", "2001:db8::/32"},
		Quotas: json.RawMessage(`{"imports":1}`),
	}
	b := profiles.Key{ID: "a", Name: "second", Hash: [32]byte{2}, CreatedAt: start.Add(time.Millisecond)}
	f.must(f.c.Keys.CreateKey(f.ctx, b))
	f.must(f.c.Keys.CreateKey(f.ctx, a))

	all, err := f.c.Keys.Keys(f.ctx)
	f.must(err)
	f.same(all, []profiles.Key{a, b})

	got, err := f.c.Keys.KeyByHash(f.ctx, a.Hash)
	f.must(err)
	f.same(got, a)
	_, err = f.c.Keys.KeyByHash(f.ctx, [32]byte{3})
	f.code(err, fault.KeyNotFound)
	got, err = f.c.Keys.Key(f.ctx, b.ID)
	f.must(err)
	f.same(got, b)

	// A rotated key has two hashes, and forgets the one before. No two keys share a hash.
	rotated := b
	for _, hash := range [][32]byte{{4}, {5}} {
		rotated.Former, rotated.FormerUntil, rotated.Hash = rotated.Hash, start.Add(time.Hour), hash
		got, err = f.c.Keys.RotateKey(f.ctx, b.ID, hash, start.Add(time.Hour))
		f.must(err)
		f.same(got, rotated)
		for _, hash := range [][32]byte{rotated.Hash, rotated.Former} {
			got, err = f.c.Keys.KeyByHash(f.ctx, hash)
			f.must(err)
			f.same(got, rotated)
		}
	}
	_, err = f.c.Keys.KeyByHash(f.ctx, b.Hash)
	f.code(err, fault.KeyNotFound)
	if _, err := f.c.Keys.RotateKey(f.ctx, b.ID, a.Hash, start); err == nil {
		f.Error("two keys have the same hash")
	}
	_, err = f.c.Keys.RotateKey(f.ctx, "unknown", [32]byte{9}, start)
	f.code(err, fault.KeyNotFound)
	// Quotas are stored byte for byte, and an error changes nothing.
	for _, quotas := range []json.RawMessage{json.RawMessage(`{"sessions":2}`), nil, json.RawMessage(`{"b":1,"a":2}`)} {
		was := rotated.Quotas
		rotated.Quotas = quotas
		got, err = f.c.Keys.SetKeyQuotas(f.ctx, b.ID, func(now json.RawMessage) (json.RawMessage, error) {
			f.same(now, was)
			return quotas, nil
		})
		f.must(err)
		f.same(got, rotated)
	}
	refused := errors.New("refused")
	if _, err := f.c.Keys.SetKeyQuotas(f.ctx, b.ID, func(json.RawMessage) (json.RawMessage, error) { return nil, refused }); err != refused {
		f.Errorf("error %v, want that of the callback", err)
	}
	_, err = f.c.Keys.SetKeyQuotas(f.ctx, "unknown", func(q json.RawMessage) (json.RawMessage, error) { return q, nil })
	f.code(err, fault.KeyNotFound)
	// The latest use counts, also if uses are recorded in another order.
	f.must(f.c.Keys.UseKey(f.ctx, b.ID, start.Add(time.Minute)))
	f.must(f.c.Keys.UseKey(f.ctx, b.ID, start))
	f.must(f.c.Keys.UseKey(f.ctx, "unknown", start))
	rotated.UsedAt = start.Add(time.Minute)
	got, err = f.c.Keys.Key(f.ctx, b.ID)
	f.must(err)
	f.same(got, rotated)
	b = rotated

	f.must(f.c.Keys.DeleteKey(f.ctx, a.ID))
	_, err = f.c.Keys.Key(f.ctx, a.ID)
	f.code(err, fault.KeyNotFound)
	f.code(f.c.Keys.DeleteKey(f.ctx, a.ID), fault.KeyNotFound)
	_, err = f.c.Keys.KeyByHash(f.ctx, a.Hash)
	f.code(err, fault.KeyNotFound)
	all, err = f.c.Keys.Keys(f.ctx)
	f.must(err)
	f.same(all, []profiles.Key{b})
}
