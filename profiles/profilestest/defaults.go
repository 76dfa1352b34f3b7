package profilestest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// The version that a move expects decides; a removal counts as none, and no
// version number comes twice.
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
	_, err := f.c.SetDefault(f.ctx, "user", "", nil, start)
	f.must(err)
	move(profiles.Move{From: 3}, false, 4, "removed")
	move(profiles.Move{}, true, 5, "")
	_, err = f.c.SetDefault(f.ctx, "user", "snap-1", nil, start)
	f.must(err)
	move(profiles.Move{From: 5}, false, 6, "snap-1")

	history, err := f.c.DefaultHistory(f.ctx, "user", 0)
	f.must(err)
	var got []string
	for _, d := range history {
		got = append(got, fmt.Sprintf("%d:%s:%s", d.Version, d.SnapshotID, d.SessionID))
	}
	f.same(got, []string{"6:snap-1:", "5:snap-8:s", "4::", "3:snap-6:s", "2:snap-4:s", "1:snap-2:s"})
	some, err := f.c.DefaultHistory(f.ctx, "user", 2)
	f.must(err)
	f.same(some, history[:2])
}

func testDefaultByHand(f *fixture) {
	version := func(n int64) *int64 { return &n }
	_, err := f.c.Default(f.ctx, "user")
	f.code(err, fault.DefaultNotFound)
	_, err = f.c.SetDefault(f.ctx, "user", "", nil, start)
	f.code(err, fault.DefaultNotFound)
	history, err := f.c.DefaultHistory(f.ctx, "user", 0)
	f.must(err)
	f.same(history, []profiles.Default{})

	s := f.session("s", "user")
	f.commit("a", s, nil)
	f.commit("b", s, nil)
	set := func(snapshot string, ifVersion *int64, want int64) {
		f.Helper()
		at := start.Add(time.Duration(want) * time.Millisecond).In(time.FixedZone("east", 3600))
		d, err := f.c.SetDefault(f.ctx, "user", snapshot, ifVersion, at)
		f.must(err)
		f.same(d, profiles.Default{UserID: "user", Version: want, SnapshotID: snapshot, MovedAt: at.UTC()})
		history, err := f.c.DefaultHistory(f.ctx, "user", 1)
		f.must(err)
		f.same(history, []profiles.Default{d})
		current, err := f.c.Default(f.ctx, "user")
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
			_, err := f.c.SetDefault(f.ctx, "user", snapshot, &wrong, start)
			f.code(err, fault.VersionConflict)
			if message := fault.MessageOf(err); !strings.Contains(message, "version 3") || !strings.Contains(message, "snapshot a") {
				f.Errorf("the winner is not named: %s", message)
			}
		}
	}
	set("", version(3), 4)
	_, err = f.c.SetDefault(f.ctx, "user", "", nil, start)
	f.code(err, fault.DefaultNotFound)
	set("b", version(0), 5)
	set("", nil, 6)
	set("a", version(6), 7)
	_, err = f.c.SetDefault(f.ctx, "user", "none", nil, start)
	f.code(err, fault.SnapshotNotFound)
}

func testDefaultByHandRace(f *fixture) {
	s := f.session("s", "user")
	f.commit("a", s, &profiles.Move{})
	var mu sync.Mutex
	won := 0
	together(20, func(int) {
		expected := int64(1)
		d, err := f.c.SetDefault(f.ctx, "user", "a", &expected, start)
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

// A default never names somebody else's snapshot, and users do not move each
// other's.
func testDefaultOfAnother(f *fixture) {
	mine, theirs := f.session("m", "me"), f.session("t", "them")
	f.commit("mine", mine, &profiles.Move{})
	f.commit("theirs", theirs, &profiles.Move{})
	_, err := f.c.SetDefault(f.ctx, "me", "theirs", nil, start)
	f.code(err, fault.SnapshotNotFound)
	_, err = f.c.SetDefault(f.ctx, "me", "", nil, start)
	f.must(err)
	d, err := f.c.Default(f.ctx, "them")
	f.must(err)
	if d.SnapshotID != "theirs" || d.Version != 1 {
		f.Errorf("their default is %+v", d)
	}
}
