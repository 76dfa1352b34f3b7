package session

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
)

// series saves n snapshots an hour apart and returns them, newest first.
func (r *rig) series(c access.Caller, n int) []string {
	r.t.Helper()
	all := make([]string, n)
	for i := range all {
		r.clock.add(time.Hour)
		_, all[n-1-i] = r.saved(c, filesystem)
	}
	r.clock.add(time.Hour)
	return all
}

// setRetention sets a user's policy.
func (r *rig) setRetention(c access.Caller, policy *library.Retention) {
	r.t.Helper()
	_, err := r.ChangeSettings(r.t.Context(), c, c.UserID, func(set settings.Settings) (settings.Settings, error) {
		set.Retention = policy
		return set, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// pruned returns the answer of a prune or a dry run.
func (r *rig) pruned(c access.Caller, p library.PruneRequest) library.PruneAnswer {
	r.t.Helper()
	a, err := r.pruner.Prune(r.t.Context(), c, p)
	if err != nil {
		r.t.Fatal(err)
	}
	if a.RemovedCount != len(a.Removed) || p.DryRun && a.KeptCount != len(a.Kept) || !p.DryRun && a.Kept != nil {
		r.t.Errorf("counts and lists differ: %+v", a)
	}
	return a
}

func keepLast(n int64) *library.Retention { return &library.Retention{KeepLast: &n} }

func keepWithin(d time.Duration) *library.Retention {
	seconds := int64(d / time.Second)
	return &library.Retention{KeepWithinSeconds: &seconds}
}

// A snapshot stays if any rule keeps it, over all sessions of the user, newest commit
// first. A dry run reports what a real one does, and removes nothing.
func TestRetention(t *testing.T) {
	r := newRig(t, nil)
	all := r.series(alice, 10)
	r.clock.add(365 * 24 * time.Hour) // a user who was away for a year loses nothing
	yes, five := true, int64(5)
	both := &library.Retention{KeepLast: &five, KeepWithinSeconds: keepWithin(2*time.Hour + time.Minute).KeepWithinSeconds}
	var dry library.PruneAnswer
	for _, test := range []struct {
		name   string
		policy *library.Retention
		stay   int // of ten, from the newest
		by     map[library.Reason]int
	}{
		{"none", nil, 10, map[library.Reason]int{library.KeptNoPolicy: 10}},
		{"the last", keepLast(3), 3, map[library.Reason]int{library.KeptNewest: 1, library.KeptLast: 3}},
		{"more than there are", keepLast(100), 10, map[library.Reason]int{library.KeptNewest: 1, library.KeptLast: 10}},
		{"within", keepWithin(4*time.Hour + time.Minute), 5, map[library.Reason]int{library.KeptNewest: 1, library.KeptWithin: 5}},
		{"within less than one", keepWithin(time.Second), 1, map[library.Reason]int{library.KeptNewest: 1, library.KeptWithin: 1}},
		{"labelled, and none is", &library.Retention{KeepLabelled: &yes}, 1, map[library.Reason]int{library.KeptNewest: 1}},
		{"both", both, 5, map[library.Reason]int{library.KeptNewest: 1, library.KeptLast: 5, library.KeptWithin: 3}},
	} {
		r.setRetention(alice, test.policy)
		dry = r.pruned(alice, library.PruneRequest{DryRun: true})
		for i, kept := range dry.Kept {
			if i >= test.stay || kept.ID != all[i] || len(kept.Reasons) == 0 {
				t.Errorf("%s: %d: %+v was kept", test.name, i, kept)
			}
		}
		if diff := cmp.Diff(test.by, dry.KeptBy); diff != "" {
			t.Errorf("%s: reasons (-want +got):\n%s", test.name, diff)
		}
		if dry.KeptCount != test.stay || dry.RemovedCount != 10-test.stay || (dry.FreedBytes > 0) != (test.stay < 10) {
			t.Errorf("%s: %+v", test.name, dry)
		}
	}
	r.wantSnapshots(all...)
	wet := r.pruned(alice, library.PruneRequest{})
	r.wantSnapshots(all[:5]...)
	dry.DryRun, dry.Kept = false, nil
	if diff := cmp.Diff(wet, dry); diff != "" {
		t.Errorf("real (-) and dry (+) differ:\n%s", diff)
	}
}

// Snapshots in use stay, whatever the policy, and so do young ones.
func TestSnapshotsInUseAreKept(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Retention, c.PruneGrace = keepLast(1), 30*time.Minute })
	ctx := t.Context()
	label := func() string {
		return r.importFile(alice, importer.Request{Format: library.FormatPlaywright, Label: "before the move"}, storageStateFile).Snapshot.ID
	}
	all := r.series(alice, 3)
	unneeded, base, def := all[2], all[1], all[0]
	if _, err := r.library.SetDefault(ctx, alice, "alice", def, nil); err != nil {
		t.Fatal(err)
	}
	live := r.create(alice, func(c *request.Create) { c.FromEnvironment = base }).ID
	_, parked := r.saved(alice, memory)
	labelled := label()
	row, err := r.catalogue.Snapshot(ctx, r.series(alice, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	release, err := r.snapshots.Hold(ctx, row, "exported")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	rescue := r.rescued(alice)
	r.clock.add(time.Hour)
	_, newest := r.saved(alice, filesystem)

	want := map[string][]library.Reason{base: {library.KeptSession}, def: {library.KeptDefault}, parked: {library.KeptParked}, row.ID: {library.KeptInUse},
		rescue: {library.KeptRescue}, newest: {library.KeptGrace, library.KeptNewest, library.KeptLast}}
	dry := r.pruned(alice, library.PruneRequest{DryRun: true})
	got := map[string][]library.Reason{}
	for _, kept := range dry.Kept {
		got[kept.ID] = kept.Reasons
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	r.pruned(alice, library.PruneRequest{})
	r.wantSnapshots(base, def, parked, row.ID, rescue, newest)
	for _, gone := range []string{unneeded, labelled} {
		_, err := r.library.SetDefault(ctx, alice, "alice", gone, nil)
		wantCode(t, err, fault.SnapshotNotFound)
	}

	// A label keeps a snapshot if the policy says so. A snapshot that is no longer in use
	// is removed.
	r.end(alice, live, none)
	release()
	r.end(alice, r.create(alice, func(c *request.Create) { c.FromEnvironment = parked }).ID, none) // the parked Chrome is thawed
	labelled = label()
	r.series(alice, 1)
	_, newest = r.saved(alice, filesystem)
	yes := true
	r.setRetention(alice, &library.Retention{KeepLabelled: &yes})
	r.pruned(alice, library.PruneRequest{})
	r.wantSnapshots(def, labelled, rescue, newest)
}

// rescued makes the daemon end a session and returns the rescue snapshot.
func (r *rig) rescued(c access.Caller) string {
	r.t.Helper()
	id := r.create(c, func(c *request.Create) { c.Idle = soon }).ID
	r.ended(id)
	row, err := r.catalogue.NewestSnapshot(r.t.Context(), id)
	if err != nil || !row.Rescue {
		r.t.Fatalf("%+v, %v", row, err)
	}
	return row.ID
}

// A user's policy replaces the daemon's as a whole. Pruning for other users needs the
// right to act for them.
func TestPolicies(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Retention = keepLast(1) })
	ctx := t.Context()
	carol := access.Caller{KeyID: "key-c", UserID: "carol", Rights: []access.Right{access.RightUse}}
	his, hers, others := r.series(bob, 3), r.series(alice, 3), r.series(carol, 3)
	r.setRetention(alice, keepLast(2))

	_, err := r.pruner.Prune(ctx, bob, library.PruneRequest{UserID: "alice"})
	wantCode(t, err, fault.Forbidden)
	_, err = r.pruner.Prune(ctx, bob, library.PruneRequest{All: true})
	wantCode(t, err, fault.Forbidden)
	_, err = r.pruner.Prune(ctx, access.Caller{UserID: "bob"}, library.PruneRequest{})
	wantCode(t, err, fault.Forbidden)
	r.pruned(admin, library.PruneRequest{}) // the admin's user has no snapshots
	r.wantSnapshots(append(append(his, hers...), others...)...)

	r.pruned(admin, library.PruneRequest{UserID: "bob"})
	r.wantSnapshots(append(append(his[:1:1], hers...), others...)...)
	if a := r.pruned(admin, library.PruneRequest{All: true, DryRun: true}); a.RemovedCount != 3 || a.KeptCount != 4 {
		t.Errorf("%+v", a)
	}
	// The daemon prunes automatically when it starts.
	if err := recovered(ctx, r.Service); err != nil {
		t.Fatal(err)
	}
	await(t, "only what policies keep is left", func() bool {
		rows, _, err := r.catalogue.Snapshots(ctx, profiles.SnapshotFilter{})
		return err == nil && len(rows) == 4
	})
	for _, id := range []string{his[1], his[2], hers[2], others[1], others[2]} {
		_, err := r.snapshots.Hold(ctx, profiles.Snapshot{ID: id}, "read") // waits until the removal has ended
		wantCode(t, err, fault.SnapshotNotFound)
	}
	r.wantSnapshots(his[0], hers[0], hers[1], others[0])
}

// Equal contents share one archive. It is freed with the last snapshot that names it.
func TestSharedBytesAreFreedOnce(t *testing.T) {
	r := newRig(t, nil)
	all := r.series(alice, 3)
	for i, id := range all {
		row, err := r.catalogue.Snapshot(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		row.ID = "twin-" + id
		if _, err := r.catalogue.Commit(t.Context(), profiles.Commit{Snapshot: row}); err != nil {
			t.Fatal(err)
		}
		all[i] = row.ID
	}
	sizes := map[string]int64{}
	rows, _, err := r.catalogue.Snapshots(t.Context(), profiles.SnapshotFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		sizes[row.ID] = row.SizeBytes
	}
	for keep, freed := range map[int64]int64{
		1: sizes[all[0]] + sizes[all[1]], // the twins were committed in the other order: oldest last
		3: 0, 5: 0,
	} {
		r.setRetention(alice, keepLast(keep))
		if a := r.pruned(alice, library.PruneRequest{DryRun: true}); a.FreedBytes != freed || int64(a.KeptCount) != keep {
			t.Errorf("keeping %d: %+v, want %d bytes", keep, a, freed)
		}
	}
}

// A snapshot that comes into use after it was picked stays: a default moves to it, or a
// session starts from it.
func TestPickedSnapshotComesIntoUse(t *testing.T) {
	for name, need := range map[string]func(r *rig, snap string) error{
		"default": func(r *rig, snap string) error {
			_, err := r.catalogue.SetDefault(context.Background(), "alice", snap, nil, r.deps.Now())
			return err
		},
		"session": func(r *rig, snap string) error {
			return r.catalogue.CreateSession(context.Background(), profiles.Session{ID: "late", UserID: "alice", KeyID: "key-a",
				Status: profiles.StatusReady, CreatedAt: r.deps.Now(), BaseSnapshotID: snap})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(c *Config) { c.Retention = keepLast(1) })
			all := r.series(alice, 2)
			r.catalogue.once("RetireSnapshot", func() {
				if err := need(r, all[1]); err != nil {
					t.Error(err)
				}
			})
			if a := r.pruned(alice, library.PruneRequest{}); a.RemovedCount != 0 || a.KeptBy[library.KeptInUse] != 1 {
				t.Errorf("%+v", a)
			}
			r.wantSnapshots(all...)
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Retention = keepLast(1) })
		all := r.series(alice, 3)
		gone, cancel := context.WithCancel(t.Context())
		r.catalogue.once("RetireSnapshot", cancel)
		_, err := r.pruner.Prune(gone, alice, library.PruneRequest{})
		if err == nil {
			t.Error("the prune continued")
		}
		if _, err := r.catalogue.Snapshot(t.Context(), all[2]); err != nil {
			t.Errorf("the next prune: %v", err)
		}
	})
}

// Saves that move the default, restores of it and prunes run concurrently. Each restore
// gets a complete snapshot, and the default always names one.
func TestConcurrentPrune(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Retention = keepLast(1) })
	ctx := t.Context()
	r.saved(alice, asDefault)
	over := request.End{Mode: save.Filesystem, SaveAsDefault: true, Conflict: save.Overwrite}
	var busy, pruner sync.WaitGroup
	done := make(chan struct{})
	pruner.Go(func() {
		for {
			if _, err := r.pruner.Prune(ctx, alice, library.PruneRequest{}); err != nil {
				t.Error(err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range 2 {
		busy.Go(func() {
			for range 5 {
				info, err := r.Create(ctx, alice, newCreate(fromAlice))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := r.End(ctx, alice, info.ID, over); err != nil {
					t.Error(err)
				}
			}
		})
	}
	busy.Wait()
	close(done)
	pruner.Wait()
	d, err := r.library.Default(ctx, alice, "alice")
	if err != nil || d.Version != 11 {
		t.Fatalf("%+v, %v", d, err)
	}
	r.pruned(alice, library.PruneRequest{})
	rows, _, err := r.catalogue.Snapshots(ctx, profiles.SnapshotFilter{})
	if err != nil || len(rows) == 0 || rows[0].ID != d.SnapshotID && len(rows) != 2 {
		t.Fatalf("%d left, %v", len(rows), err)
	}
	var left []string
	for _, row := range rows {
		left = append(left, row.ID)
	}
	r.wantSnapshots(left...)
}
