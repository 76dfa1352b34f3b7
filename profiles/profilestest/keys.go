package profilestest

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

func testKeys(f *fixture) {
	a := profiles.Key{
		ID: "b", Name: "first", UserID: "user", AllUsers: true, Hash: [32]byte{1, 31: 255}, CreatedAt: start,
		Rights: []string{"use", "secrets", "admin"},
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
