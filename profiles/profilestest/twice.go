package profilestest

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// RunTwice runs those tests of the suite that work with two open catalogues on one database
// at once, as two processes do. open returns both, without records, for each test and closes
// them when the test ends.
func RunTwice(t *testing.T, open func(t *testing.T) (one, other Catalogue)) {
	tests := []struct {
		name string
		run  func(*fixture)
	}{
		{"user race", testUserRace},
		{"session exists", testSessionExists},
		{"session update", testSessionUpdate},
		{"commit race", testCommitRace},
		{"set default race", testSetDefaultRace},
		{"event race", testEventRace},
		{"message race", testMessageRace},
		{"note race", testNoteRace},
		{"answer race", testAnswerRace},
		{"readers and writers", testConcurrent},
		{"commit order", testCommitOrder},
		{"run numbers", testRunNumbers},
		{"attempts count once", testAttemptsOnce},
		{"notices of a race", testNoticesOnce},
		{"keys", testKeysTogether},
		{"extension race", testExtensionRace},
		{"packed extension race", testPackedExtensionRace},
		{"a snapshot is used or deleted", testDeleteRace},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			one, other := open(t)
			test.run(&fixture{T: t, c: one, other: &other, ctx: t.Context()})
		})
	}
}

// No sequence is used twice, and those of one session are in the order of its commits. The
// versions of the default, which each commit moves, show this order.
func testCommitOrder(f *fixture) {
	const n, each = 8, 5
	sessions := []profiles.Session{f.session("s-0", "user"), f.session("s-1", "user")}
	var versions sync.Map // by snapshot
	f.together(n, func(i int, c Catalogue) {
		for k := range each {
			s := f.snapshot(fmt.Sprintf("snap-%d-%d", i, k), sessions[(i/2+k)%2])
			moved, err := c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: s, Move: &profiles.Move{Overwrite: true}})
			f.code(err, "")
			versions.Store(s.ID, moved.Version)
		}
	})
	used := map[int64]bool{}
	for _, session := range sessions {
		all, _, err := f.other.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{SessionID: session.ID})
		f.must(err)
		f.same(len(all), n*each/2)
		last := int64(math.MaxInt64)
		for _, s := range all { // the newest first
			version, _ := versions.Load(s.ID)
			if used[s.Sequence] {
				f.Errorf("the sequence %d was used twice", s.Sequence)
			}
			used[s.Sequence] = true
			if v, ok := version.(int64); !ok || v >= last {
				f.Errorf("%s: snapshot %s with the sequence %d was committed as version %v, after one with a higher sequence, version %d", session.ID, s.ID, s.Sequence, version, last)
			} else {
				last = v
			}
		}
	}
}

// Runs of a session that begin at once get the numbers 1, 2, …
func testRunNumbers(f *fixture) {
	const n = 12
	f.session("s", "user")
	f.together(n, func(i int, c Catalogue) {
		_, err := c.Runs.BeginRun(f.ctx, profiles.Run{ID: fmt.Sprintf("run-%d", i), SessionID: "s", StartedAt: start})
		f.code(err, "")
	})
	all, err := f.other.Runs.Runs(f.ctx, "s")
	f.must(err)
	f.same(len(all), n)
	for i, r := range all {
		f.same(r.Number, int64(i+1))
	}
}

// Two senders that read the same delivery count one attempt.
func testAttemptsOnce(f *fixture) {
	s := f.session("s", "user")
	_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: f.snapshot("snap", s), Notices: func(profiles.Session) []profiles.Notice {
		return []profiles.Notice{{ID: "d", URL: "u", Event: "e", Body: []byte("{}"), At: start}}
	}})
	f.must(err)
	f.together(10, func(_ int, c Catalogue) {
		d := profiles.Delivery{Notice: profiles.Notice{ID: "d"}, Since: start}
		f.code(c.Deliveries.FinishAttempt(f.ctx, d, profiles.Attempt{State: profiles.DeliveryPending, At: start, NextAt: start.Add(time.Hour)}), "")
	})
	d, err := f.c.Deliveries.Delivery(f.ctx, "d")
	f.must(err)
	f.same(d.Attempts, 1)
}

// A change that is tried again after a conflict queues its notices once, and they stand in
// the order of the changes.
func testNoticesOnce(f *fixture) {
	const n = 12
	f.session("s", "user")
	f.together(n, func(_ int, c Catalogue) {
		_, err := c.Sessions.UpdateSession(f.ctx, "s", func(s *profiles.Session) error {
			s.BaseVersion++
			s.Notices = []profiles.Notice{{ID: fmt.Sprint("d-", s.BaseVersion), URL: "u", Event: fmt.Sprint(s.BaseVersion), Body: []byte("{}"), At: start}}
			return nil
		})
		f.code(err, "")
	})
	all, _, err := f.other.Deliveries.DeliveryPage(f.ctx, profiles.DeliveryFilter{})
	f.must(err)
	slices.Reverse(all)
	f.same(len(all), n)
	for i, d := range all {
		f.same(d.Event, fmt.Sprint(7+i+1)) // the fixture's session begins with 7
	}
}

// A key that one makes is known to the other at once, and so is its end.
func testKeysTogether(f *fixture) {
	hash := func(i int) [32]byte { return [32]byte{byte(i + 1)} }
	f.together(10, func(i int, c Catalogue) {
		f.code(c.Keys.CreateKey(f.ctx, profiles.Key{ID: fmt.Sprint("key-", i), Hash: hash(i), CreatedAt: start}), "")
	})
	f.together(10, func(i int, c Catalogue) {
		from := (i + 1) % 10 // another handle made it
		_, err := c.Keys.KeyByHash(f.ctx, hash(from))
		f.code(err, "")
		f.code(c.Keys.UseKey(f.ctx, fmt.Sprint("key-", from), start.Add(time.Duration(from)*time.Second)), "")
		f.code(c.Keys.DeleteKey(f.ctx, fmt.Sprint("key-", from)), "")
	})
	for _, c := range []Catalogue{f.c, *f.other} {
		all, err := c.Keys.Keys(f.ctx)
		f.must(err)
		f.same(len(all), 0)
		_, err = c.Keys.KeyByHash(f.ctx, hash(3))
		f.code(err, fault.KeyNotFound)
	}
}

// Of uploads of one extension at once, one is fresh for each content.
func testExtensionRace(f *fixture) {
	var fresh atomic.Int32
	f.together(12, func(_ int, c Catalogue) {
		_, is, _, err := c.Extensions.PutExtension(f.ctx, profiles.Extension{ID: "x", UserID: "user", SHA256: "same", CreatedAt: start}, nil)
		f.code(err, "")
		if is {
			fresh.Add(1)
		}
	})
	f.same(fresh.Load(), int32(1))
}

// Uploads of the same files by many users at once, with deletes and sweeps among them, leave
// the files stored as long as a record names them: whole, and once.
func testPackedExtensionRace(f *fixture) {
	f.together(12, func(i int, c Catalogue) {
		e := profiles.Extension{ID: "x", UserID: fmt.Sprint("user-", i), SHA256: "same", CreatedAt: start}
		_, _, _, err := c.Extensions.PutExtension(f.ctx, e, packed("many bytes"))
		f.code(err, "")
		if i > 0 {
			_, err = c.Extensions.DeleteExtension(f.ctx, e.UserID, e.ID, false)
			f.code(err, "")
			f.code(c.Packed.RemoveUnusedExtensions(f.ctx), "")
		}
	})
	for _, c := range []Catalogue{f.c, *f.other} {
		f.same(f.stored(c), map[string]bool{"same": true})
		f.reads(c, "same", "many bytes")
	}
	_, err := f.other.Extensions.DeleteExtension(f.ctx, "user-0", "x", false)
	f.must(err)
	f.code(f.c.Packed.PackedExtension(f.ctx, "same", io.Discard), fault.ExtensionNotFound)
}

// A snapshot is deleted, or becomes a default: never both.
func testDeleteRace(f *fixture) {
	const n = 10
	for i := range n {
		f.commit(fmt.Sprint("snap-", i), f.session(fmt.Sprint("s-", i), fmt.Sprint("user-", i)), nil)
	}
	var mu sync.Mutex
	done := map[int]string{}
	f.together(2*n, func(i int, c Catalogue) {
		// The two that race for one snapshot have different handles.
		which, deletes := i/2, i%2 == 0
		id, what := fmt.Sprint("snap-", which), "deleted"
		var err error
		if deletes {
			_, err = c.Snapshots.DeleteSnapshot(f.ctx, id)
		} else {
			what = "default"
			_, err = c.Defaults.SetDefault(f.ctx, fmt.Sprint("user-", which), id, nil, start)
		}
		if err != nil {
			f.code(err, map[bool]fault.Code{true: fault.SnapshotInUse, false: fault.SnapshotNotFound}[deletes])
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if was := done[which]; was != "" {
			f.Errorf("%s: both %s and %s", id, was, what)
		}
		done[which] = cmp.Or(done[which], what)
	})
	f.same(len(done), n)
}
