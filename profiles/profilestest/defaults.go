package profilestest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// The version that a move expects decides. A removal counts as none, and no version
// number is used twice.
func testDefaultMoves(f *fixture) {
	s := f.session("s", "user")
	n := 0
	move := func(m profiles.Move, moved bool, version int64, reason string) {
		f.Helper()
		n++
		got := f.commit(fmt.Sprintf("snap-%d", n), s, &m)
		if got.Moved != moved || got.Version != version || (got.Reason == "") != (reason == "") || !strings.Contains(got.Reason, reason) {
			f.Errorf("move %+v gave %+v", m, got)
		}
	}
	move(profiles.Move{From: 1}, false, 0, "no default")
	move(profiles.Move{}, true, 1, "")
	move(profiles.Move{}, false, 1, "snap-2")
	move(profiles.Move{From: 1}, true, 2, "")
	move(profiles.Move{From: 1}, false, 2, "snap-4")
	move(profiles.Move{From: 1, Overwrite: true}, true, 3, "")
	_, err := f.c.Defaults.SetDefault(f.ctx, "user", "", nil, start)
	f.must(err)
	move(profiles.Move{From: 3}, false, 4, "removed")
	move(profiles.Move{}, true, 5, "")
	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "snap-1", nil, start)
	f.must(err)
	move(profiles.Move{From: 5}, false, 6, "snap-1")

	history, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 0, "")
	f.must(err)
	var got []string
	for _, d := range history {
		got = append(got, fmt.Sprintf("%d:%s:%s", d.Version, d.SnapshotID, d.SessionID))
	}
	f.same(got, []string{"6:snap-1:", "5:snap-8:s", "4::", "3:snap-6:s", "2:snap-4:s", "1:snap-2:s"})
	some, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 2, "")
	f.must(err)
	f.same(some, history[:2])

	f.commit("theirs", f.session("t", "another"), &profiles.Move{})
	f.commit("gone", f.session("u", "without"), &profiles.Move{})
	_, err = f.c.Defaults.SetDefault(f.ctx, "without", "", nil, start)
	f.must(err)
	current, err := f.c.Defaults.Defaults(f.ctx)
	f.must(err)
	got = nil
	for _, d := range current {
		got = append(got, fmt.Sprintf("%s:%d:%s", d.UserID, d.Version, d.SnapshotID))
	}
	f.same(got, []string{"another:1:theirs", "user:6:snap-1"})
}

// An automatic renewal does not conflict with a session that started without an
// environment, if the renewed version was current then. It conflicts with all sessions
// that started from an environment. A version made on request conflicts too.
func testDefaultRenewed(f *fixture) {
	s := f.session("s", "user")
	n := 0
	move := func(m profiles.Move, moved bool, version, renews int64) {
		f.Helper()
		n++
		got := f.commit(fmt.Sprintf("snap-%d", n), s, &m)
		now, err := f.c.Defaults.Default(f.ctx, "user")
		f.must(err)
		if got.Moved != moved || got.Version != version || now.Version != version || now.Renews != renews {
			f.Errorf("move %+v gave %+v, and the default is %+v", m, got, now)
		}
	}
	renewal := func(from int64) profiles.Move { return profiles.Move{From: from, Renewal: true} }
	move(profiles.Move{}, true, 1, 0)
	move(profiles.Move{From: 1}, true, 2, 0)
	move(renewal(1), false, 2, 0)
	move(renewal(2), true, 3, 2)
	move(renewal(2), false, 3, 2)
	move(renewal(3), true, 4, 2)
	fresh := func(from int64) profiles.Move { return profiles.Move{From: from, Fresh: true} }
	move(fresh(1), false, 4, 2)
	move(profiles.Move{From: 2}, false, 4, 2)
	move(profiles.Move{From: 3}, false, 4, 2)
	move(fresh(2), true, 5, 0)
	move(renewal(5), true, 6, 5)
	move(fresh(4), false, 6, 5)
	five, six := int64(5), int64(6)
	_, err := f.c.Defaults.SetDefault(f.ctx, "user", "snap-1", &five, start)
	f.code(err, fault.VersionConflict)
	d, err := f.c.Defaults.SetDefault(f.ctx, "user", "snap-1", &six, start)
	f.must(err)
	f.same([]int64{d.Version, d.Renews}, []int64{7, 0})
	history, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 3, "")
	f.must(err)
	f.same([]int64{history[0].Renews, history[1].Renews, history[2].Renews}, []int64{0, 5, 0})
}

// A snapshot's last use is the end of the last session that started from it or made it,
// whichever other sessions ended since.
func testLastUsed(f *fixture) {
	used := func(want time.Time) {
		f.Helper()
		got, err := f.c.Defaults.LastUsed(f.ctx, "user", "base")
		f.must(err)
		f.same(got, want)
	}
	end := func(s profiles.Session, at time.Time) {
		f.Helper()
		f.must(f.c.Sessions.EndSession(f.ctx, profiles.End{SessionID: s.ID, Status: profiles.StatusCompleted, EndedAt: at}))
	}
	used(time.Time{})
	maker := f.session("maker", "user")
	f.commit("base", maker, nil)
	used(time.Time{})
	restored := f.session("restored", "user") // from "base", like all the sessions
	end(f.session("another", "another"), start.Add(9*time.Hour))
	end(restored, start.Add(time.Hour))
	used(start.Add(time.Hour))
	_, err := f.c.Sessions.UpdateSession(f.ctx, "maker", func(s *profiles.Session) error { s.BaseSnapshotID = ""; return nil })
	f.must(err)
	end(maker, start.Add(2*time.Hour))
	used(start.Add(2 * time.Hour))
	_, err = f.c.Sessions.UpdateSession(f.ctx, f.session("other", "user").ID, func(s *profiles.Session) error { s.BaseSnapshotID = "b"; return nil })
	f.must(err)
	f.must(f.c.Sessions.EndSession(f.ctx, profiles.End{SessionID: "other", Status: profiles.StatusCompleted, EndedAt: start.Add(3 * time.Hour)}))
	used(start.Add(2 * time.Hour))
}

func testSetDefault(f *fixture) {
	version := func(n int64) *int64 { return &n }
	_, err := f.c.Defaults.Default(f.ctx, "user")
	f.code(err, fault.DefaultNotFound)
	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "", nil, start)
	f.code(err, fault.DefaultNotFound)
	history, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 0, "")
	f.must(err)
	f.same(history, []profiles.PastDefault{})

	s := f.session("s", "user")
	f.commit("a", s, nil)
	f.commit("b", s, nil)
	set := func(snapshot string, ifVersion *int64, want int64) {
		f.Helper()
		at := start.Add(time.Duration(want) * time.Millisecond).In(time.FixedZone("east", 3600))
		d, err := f.c.Defaults.SetDefault(f.ctx, "user", snapshot, ifVersion, at)
		f.must(err)
		f.same(d, profiles.Default{UserID: "user", Version: want, SnapshotID: snapshot, MovedAt: at.UTC()})
		history, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 1, "")
		f.must(err)
		f.same(history, []profiles.PastDefault{{Default: d, Available: snapshot != ""}})
		current, err := f.c.Defaults.Default(f.ctx, "user")
		if snapshot == "" {
			f.code(err, fault.DefaultNotFound)
			return
		}
		f.must(err)
		f.same(current, d)
	}
	set("a", version(0), 1)
	set("b", version(1), 2)
	set("a", version(2), 3) // rollback
	for _, wrong := range []int64{0, 1, 2, 4, -1} {
		for _, snapshot := range []string{"b", ""} {
			_, err := f.c.Defaults.SetDefault(f.ctx, "user", snapshot, &wrong, start)
			f.code(err, fault.VersionConflict)
			if message := fault.MessageOf(err); !strings.Contains(message, "version 3") || !strings.Contains(message, "snapshot a") {
				f.Errorf("the winner is not named: %s", message)
			}
		}
	}
	set("", version(3), 4)
	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "", nil, start)
	f.code(err, fault.DefaultNotFound)
	set("b", version(0), 5)
	set("", nil, 6)
	set("a", version(6), 7)
	_, err = f.c.Defaults.SetDefault(f.ctx, "user", "none", nil, start)
	f.code(err, fault.SnapshotNotFound)
}

// The history shows, page by page, which versions can still be restored.
func testDefaultHistory(f *fixture) {
	s := f.session("s", "user")
	for i := range 7 {
		f.commit(fmt.Sprintf("snap-%d", i+1), s, &profiles.Move{Overwrite: true})
	}
	_, err := f.c.Defaults.SetDefault(f.ctx, "user", "", nil, start) // version 8
	f.must(err)
	for _, id := range []string{"snap-2", "snap-5"} {
		_, err := f.c.Snapshots.DeleteSnapshot(f.ctx, id)
		f.must(err)
	}
	var got []string
	for next := ""; ; {
		var page []profiles.PastDefault
		page, next, err = f.c.Defaults.DefaultHistory(f.ctx, "user", 3, next)
		f.must(err)
		for _, d := range page {
			got = append(got, fmt.Sprintf("%d:%s:%t", d.Version, d.SnapshotID, d.Available))
		}
		if next == "" {
			break
		}
	}
	f.same(got, []string{"8::false", "7:snap-7:true", "6:snap-6:true", "5:snap-5:false", "4:snap-4:true",
		"3:snap-3:true", "2:snap-2:false", "1:snap-1:true"})
	for _, wrong := range []string{"9", "0", "-1", "03", "x", "9223372036854775808"} {
		_, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 3, wrong)
		f.code(err, fault.InvalidField)
	}
	_, _, err = f.c.Defaults.DefaultHistory(f.ctx, "other", 3, "3")
	f.code(err, fault.InvalidField)
	_, next, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 8, "")
	f.must(err)
	if next != "" {
		f.Errorf("the last page has the cursor %q", next)
	}
}

func testSetDefaultRace(f *fixture) {
	s := f.session("s", "user")
	f.commit("a", s, &profiles.Move{})
	var mu sync.Mutex
	won := 0
	f.together(20, func(_ int, c Catalogue) {
		expected := int64(1)
		d, err := c.Defaults.SetDefault(f.ctx, "user", "a", &expected, start)
		if err != nil {
			f.code(err, fault.VersionConflict)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		won++
		if d.Version != 2 {
			f.Errorf("the winner's version is %d", d.Version)
		}
	})
	if won != 1 {
		f.Errorf("%d won", won)
	}
}

// A default never names another user's snapshot, and users do not move each other's
// defaults.
func testDefaultOfAnother(f *fixture) {
	mine, theirs := f.session("m", "me"), f.session("t", "them")
	f.commit("mine", mine, &profiles.Move{})
	f.commit("theirs", theirs, &profiles.Move{})
	_, err := f.c.Defaults.SetDefault(f.ctx, "me", "theirs", nil, start)
	f.code(err, fault.SnapshotNotFound)
	_, err = f.c.Defaults.SetDefault(f.ctx, "me", "", nil, start)
	f.must(err)
	d, err := f.c.Defaults.Default(f.ctx, "them")
	f.must(err)
	if d.SnapshotID != "theirs" || d.Version != 1 {
		f.Errorf("their default is %+v", d)
	}
}
