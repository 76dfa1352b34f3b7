package profilestest

import (
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// names returns the IDs of snapshots, in order.
func names(all []profiles.Snapshot) []string {
	var got []string
	for _, s := range all {
		got = append(got, s.ID)
	}
	return got
}

func testSnapshots(f *fixture) {
	s := f.session("s", "user")
	bare := profiles.Snapshot{ID: "bare", SessionID: "s", UserID: "user", CreatedAt: start}
	_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: bare})
	f.must(err)
	got, err := f.c.Snapshots.Snapshot(f.ctx, "bare")
	f.must(err)
	f.same(got, bare)
	if got.Report != nil || !got.ExpiresAt.IsZero() {
		f.Errorf("unset fields have values: %+v", got)
	}
	rescue := f.snapshot("rescue", s)
	rescue.Rescue, rescue.Auto, rescue.ExpiresAt = true, true, start.Add(24*time.Hour)
	_, err = f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: rescue})
	f.must(err)
	got, err = f.c.Snapshots.NewestSnapshot(f.ctx, "s")
	f.must(err)
	f.same(got, rescue)

	_, err = f.c.Snapshots.Snapshot(f.ctx, "none")
	f.code(err, fault.SnapshotNotFound)
	_, err = f.c.Snapshots.NewestSnapshot(f.ctx, "none")
	f.code(err, fault.SessionNotFound)
	f.session("t", "user")
	_, err = f.c.Snapshots.NewestSnapshot(f.ctx, "t")
	f.code(err, fault.NoSnapshot)
	all, _, err := f.c.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{SessionID: "t"})
	f.must(err)
	f.same(names(all), []string{})
}

// The newest snapshot is the one committed last, whatever its ID or time.
func testSnapshotOrder(f *fixture) {
	s := f.session("s", "user")
	order := ids("snap", 10)
	var last int64
	for i, id := range order {
		snap := f.snapshot(id, s)
		snap.CreatedAt, snap.Sequence = start.Add(-time.Duration(i)*time.Hour), int64(-i)
		_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: snap})
		f.must(err)
		newest, err := f.c.Snapshots.NewestSnapshot(f.ctx, "s")
		f.must(err)
		if newest.ID != id || newest.Sequence <= last {
			f.Errorf("after %s the newest is %s with sequence %d after %d", id, newest.ID, newest.Sequence, last)
		}
		last = newest.Sequence
	}
	for i := len(order) - 1; i >= 0; i-- {
		newest, err := f.c.Snapshots.NewestSnapshot(f.ctx, "s")
		f.must(err)
		if newest.ID != order[i] {
			f.Errorf("the newest is %s, want %s", newest.ID, order[i])
		}
		_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, newest.ID)
		f.must(err)
	}
	_, err := f.c.Snapshots.NewestSnapshot(f.ctx, "s")
	f.code(err, fault.NoSnapshot)

	f.commit("later", s, nil)
	newest, err := f.c.Snapshots.NewestSnapshot(f.ctx, "s")
	f.must(err)
	if newest.Sequence <= last {
		f.Errorf("sequence %d was used again", newest.Sequence)
	}
	_, err = f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: f.snapshot(order[0], s)})
	f.code(err, fault.StoreFailed) // an ID is not used again either
}

func testSnapshotPages(f *fixture) {
	s, other, foreign := f.session("s", "user"), f.session("other", "user"), f.session("f", "foreign")
	f.commit("beside", other, nil)
	f.commit("foreign", foreign, nil)
	order := ids("snap", 10)
	for _, id := range order {
		f.commit(id, s, nil)
	}
	slices.Reverse(order)
	for _, test := range []struct {
		name   string
		filter profiles.SnapshotFilter
		want   []string
		wrong  []string // cursors of other lists
	}{
		{"of a session", profiles.SnapshotFilter{SessionID: "s"}, order, []string{"none", "beside", "foreign"}},
		{"of a user", profiles.SnapshotFilter{UserID: "user"}, append(slices.Clone(order), "beside"), []string{"none", "foreign"}},
		{"of both", profiles.SnapshotFilter{SessionID: "f", UserID: "user"}, nil, []string{"foreign", "beside"}},
		{"all", profiles.SnapshotFilter{}, append(slices.Clone(order), "foreign", "beside"), []string{"none"}},
	} {
		all, next, err := f.c.Snapshots.Snapshots(f.ctx, test.filter)
		f.must(err)
		f.same(names(all), test.want)
		if next != "" {
			f.Errorf("%s: a complete list has the cursor %q", test.name, next)
		}
		var got []string
		page := test.filter
		for page.Limit = 3; ; page.StartAfter = next {
			var some []profiles.Snapshot
			some, next, err = f.c.Snapshots.Snapshots(f.ctx, page)
			f.must(err)
			got = append(got, names(some)...)
			if next == "" {
				break
			}
		}
		f.same(got, test.want)
		for _, page.StartAfter = range test.wrong {
			_, _, err = f.c.Snapshots.Snapshots(f.ctx, page)
			f.code(err, fault.InvalidField)
		}
	}

	// The list changes while it is read. New snapshots are not seen, and a cursor outlives
	// its snapshot.
	_, next, err := f.c.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{SessionID: "s", Limit: 3})
	f.must(err)
	f.commit("new", s, nil)
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, next)
	f.must(err)
	rest, _, err := f.c.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{SessionID: "s", StartAfter: next})
	f.must(err)
	f.same(names(rest), order[3:])
}

func testExpiredSnapshots(f *fixture) {
	s := f.session("s", "user")
	for id, expires := range map[string]time.Time{
		"kept": {}, "past": start.Add(-time.Hour), "now": start, "later": start.Add(time.Millisecond),
		"default": start.Add(-2 * time.Hour), "was-default": start.Add(-3 * time.Hour),
	} {
		snap := f.snapshot(id, s)
		snap.Rescue, snap.ExpiresAt = true, expires
		_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: snap})
		f.must(err)
	}
	for _, id := range []string{"was-default", "default"} {
		_, err := f.c.Defaults.SetDefault(f.ctx, "user", id, nil, start)
		f.must(err)
	}
	got, err := f.c.Retention.ExpiredSnapshots(f.ctx, start)
	f.must(err)
	f.same(names(got), []string{"was-default", "past", "now"})

	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "", nil, start)
	f.must(err)
	got, err = f.c.Retention.ExpiredSnapshots(f.ctx, start)
	f.must(err)
	f.same(names(got), []string{"was-default", "default", "past", "now"})
}

func testDeleteSnapshot(f *fixture) {
	s, other := f.session("s", "user"), f.session("o", "other")
	f.commit("first", s, &profiles.Move{})
	f.commit("second", s, nil)
	f.commit("foreign", other, &profiles.Move{})

	_, err := f.c.Snapshots.DeleteSnapshot(f.ctx, "none")
	f.code(err, fault.SnapshotNotFound)
	inUse := func(archiveID string, want bool) {
		f.Helper()
		got, err := f.c.Snapshots.ArchiveInUse(f.ctx, archiveID)
		f.must(err)
		f.same(got, want)
	}
	inUse("archive-first", true)
	inUse("archive-none", false)
	for _, id := range []string{"first", "foreign"} {
		_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, id)
		f.code(err, fault.SnapshotInUse)
		_, err = f.c.Snapshots.Snapshot(f.ctx, id)
		f.must(err)
	}

	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "second", nil, start)
	f.must(err)
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, "first") // an earlier version does not need it
	f.must(err)
	inUse("archive-first", false)
	_, err = f.c.Snapshots.Snapshot(f.ctx, "first")
	f.code(err, fault.SnapshotNotFound)
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, "first")
	f.code(err, fault.SnapshotNotFound)
	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "first", nil, start)
	f.code(err, fault.SnapshotNotFound)

	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "", nil, start)
	f.must(err)
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, "second") // nor does a removed default
	f.must(err)
	history, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 0, "")
	f.must(err)
	if len(history) != 3 || history[2].SnapshotID != "first" {
		f.Errorf("the history is %+v", history)
	}
}

// A policy retires only snapshots that are not needed: by a default, or by a session that
// has not ended, as its base or as its newest.
func testRetireSnapshot(f *fixture) {
	needed := func(user string, want ...profiles.NeededSnapshot) {
		f.Helper()
		got, err := f.c.Retention.NeededSnapshots(f.ctx, user)
		f.must(err)
		f.same(got, want)
	}
	retire := func(id string, want fault.Code) {
		f.Helper()
		_, err := f.c.Retention.RetireSnapshot(f.ctx, id)
		f.code(err, want)
		_, err = f.c.Snapshots.Snapshot(f.ctx, id)
		if want == fault.SnapshotInUse {
			f.must(err)
		} else {
			f.code(err, fault.SnapshotNotFound)
		}
	}
	needed("user")
	first := f.session("first", "user")
	for _, id := range []string{"base", "default", "old", "new"} {
		f.commit(id, first, nil)
	}
	f.session("other", "somebody") // its base does not exist
	_, err := f.c.Defaults.SetDefault(f.ctx, "user", "default", nil, start)
	f.must(err)
	second := f.session("second", "user")
	_, err = f.c.Sessions.UpdateSession(f.ctx, "second", func(s *profiles.Session) error { s.BaseSnapshotID = "base"; return nil })
	f.must(err)
	f.commit("earlier", second, nil)
	f.commit("later", second, nil)
	by := func(id string, by profiles.NeededBy) profiles.NeededSnapshot {
		return profiles.NeededSnapshot{SnapshotID: id, By: by}
	}
	needed("user", by("later", profiles.NeededBySession), by("new", profiles.NeededBySession),
		by("default", profiles.NeededByDefault), by("base", profiles.NeededBySession))
	needed("somebody")

	retire("none", fault.SnapshotNotFound)
	for _, id := range []string{"base", "default", "new", "later"} {
		retire(id, fault.SnapshotInUse)
	}
	retire("old", "")
	retire("earlier", "")

	// A session in error has not ended while its data is kept.
	_, err = f.c.Sessions.UpdateSession(f.ctx, "second", func(s *profiles.Session) error { s.Status = profiles.StatusError; return nil })
	f.must(err)
	retire("base", fault.SnapshotInUse)
	f.must(f.c.Sessions.EndSession(f.ctx, profiles.End{SessionID: "first", Status: profiles.StatusCompleted, EndedAt: start}))
	f.must(f.c.Sessions.EndSession(f.ctx, profiles.End{SessionID: "second", Status: profiles.StatusError, EndedAt: start}))
	needed("user", by("default", profiles.NeededByDefault))
	for _, id := range []string{"base", "new", "later"} {
		retire(id, "")
	}
	// On request a snapshot is deleted even if a session needs it.
	third := f.session("third", "user")
	f.commit("wanted", third, nil)
	retire("wanted", fault.SnapshotInUse)
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, "wanted")
	f.must(err)
	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "", nil, start)
	f.must(err)
	needed("user")
	retire("default", "")
}

// Each user with snapshots is listed once. Reports are left out on request.
func testUsersWithSnapshots(f *fixture) {
	got, err := f.c.Retention.UsersWithSnapshots(f.ctx)
	f.must(err)
	f.same(got, []string{})
	f.session("idle", "idle")
	b, a := f.session("b", "bert"), f.session("a", "anna")
	f.commit("b-1", b, nil)
	f.commit("a-1", a, nil)
	f.commit("b-2", b, nil)
	got, err = f.c.Retention.UsersWithSnapshots(f.ctx)
	f.must(err)
	f.same(got, []string{"anna", "bert"})
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, "a-1")
	f.must(err)
	got, err = f.c.Retention.UsersWithSnapshots(f.ctx)
	f.must(err)
	f.same(got, []string{"bert"})

	all, _, err := f.c.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{UserID: "bert"})
	f.must(err)
	bare, _, err := f.c.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{UserID: "bert", OmitReports: true})
	f.must(err)
	for i := range all {
		if all[i].Report == nil {
			f.Errorf("%s has no report", all[i].ID)
		}
		all[i].Report = nil
	}
	f.same(bare, all)
}

// Equal contents share one archive. Only the delete of its last record reports that its
// bytes may be deleted.
func testSharedArchive(f *fixture) {
	s := f.session("s", "user")
	for _, id := range []string{"a", "b", "c"} {
		snap := f.snapshot(id, s)
		snap.ArchiveID = "shared"
		_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: snap})
		f.must(err)
	}
	f.commit("single", s, nil)
	for _, test := range []struct {
		id   string
		last bool
	}{{"b", false}, {"single", true}, {"a", false}, {"c", true}} {
		last, err := f.c.Snapshots.DeleteSnapshot(f.ctx, test.id)
		f.must(err)
		if last != test.last {
			f.Errorf("delete of %s: last use %t", test.id, last)
		}
	}
	snap := f.snapshot("no-archive", s)
	snap.ArchiveID = ""
	_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: snap})
	f.must(err)
	last, err := f.c.Snapshots.DeleteSnapshot(f.ctx, "no-archive")
	f.must(err)
	if last {
		f.Error("a record without an archive was its last use")
	}
}
