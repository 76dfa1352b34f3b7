package profilestest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// A user's documents are read as they were written, byte for byte. They outlive the
// user's other records.
func testUsers(f *fixture) {
	for _, id := range []string{"ada", "a\x00b", "ада"} {
		got, err := f.c.Users.User(f.ctx, id)
		f.must(err)
		f.same(got, profiles.User{ID: id})

		want := profiles.User{ID: id, CreatedAt: start, Settings: []byte(`{"login_check": null}`)}
		set := func(u *profiles.User) error { u.Settings = want.Settings; return nil }
		got, err = f.c.Users.UpdateUser(f.ctx, id, start, set)
		f.must(err)
		f.same(got, want)

		// The time of creation is that of the first record.
		want.LoginChecked = []byte(`{"logged_in": true}`)
		got, err = f.c.Users.UpdateUser(f.ctx, id, start.Add(time.Hour), func(u *profiles.User) error { u.LoginChecked = want.LoginChecked; return nil })
		f.must(err)
		f.same(got, want)
		got, err = f.c.Users.User(f.ctx, id)
		f.must(err)
		f.same(got, want)
	}
	// The documents are removed, and the user remains.
	got, err := f.c.Users.UpdateUser(f.ctx, "ada", start, func(u *profiles.User) error { u.Settings, u.LoginChecked = nil, nil; return nil })
	f.must(err)
	f.same(got, profiles.User{ID: "ada", CreatedAt: start})

	// A user recorded by a session has documents too.
	s := f.session("s", "bob")
	got, err = f.c.Users.UpdateUser(f.ctx, "bob", start, func(u *profiles.User) error { u.Settings = []byte(`{}`); return nil })
	f.must(err)
	f.same(got, profiles.User{ID: "bob", CreatedAt: s.CreatedAt, Settings: []byte(`{}`)})
	f.session("t", "bob")
	after, err := f.c.Users.User(f.ctx, "bob")
	f.must(err)
	f.same(after, got)

	// Only users with settings are listed; ada has none any more, and cid never had any.
	f.session("u", "cid")
	all, err := f.c.Users.UsersWithSettings(f.ctx)
	f.must(err)
	ids := make([]string, 0, len(all))
	for _, u := range all {
		ids = append(ids, u.ID)
		is, err := f.c.Users.User(f.ctx, u.ID)
		f.must(err)
		f.same(u, is)
	}
	f.same(ids, []string{"a\x00b", "bob", "ада"})
}

// A change that is refused, or that breaks the record, has no effect.
func testUserUpdateFails(f *fixture) {
	refused := errors.New("refused")
	_, err := f.c.Users.UpdateUser(f.ctx, "ada", start, func(u *profiles.User) error { u.Settings = []byte(`{}`); return refused })
	if !errors.Is(err, refused) {
		f.Errorf("got %v", err)
	}
	_, err = f.c.Users.UpdateUser(f.ctx, "ada", start, func(u *profiles.User) error { u.ID = "bob"; return nil })
	f.code(err, fault.Internal)
	got, err := f.c.Users.User(f.ctx, "ada")
	f.must(err)
	f.same(got, profiles.User{ID: "ada"})
}

// Each of several concurrent changes sees the one before.
func testUserRace(f *fixture) {
	const n = 8
	var failed atomic.Int64
	f.together(n, func(_ int, c Catalogue) {
		_, err := c.Users.UpdateUser(f.ctx, "ada", start, func(u *profiles.User) error {
			u.Settings = append(append([]byte{}, u.Settings...), '1')
			return nil
		})
		if err != nil {
			failed.Add(1)
		}
	})
	got, err := f.c.Users.User(f.ctx, "ada")
	f.must(err)
	if len(got.Settings) != n || failed.Load() > 0 {
		f.Errorf("%d of %d changes, %d failed", len(got.Settings), n, failed.Load())
	}
}
