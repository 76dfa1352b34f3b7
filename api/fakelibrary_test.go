package api

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/state"
)

// fakeLibrary has one snapshot and records whose snapshots were requested.
type fakeLibrary struct {
	*failing
	owners []string
	large  []byte // of a state or an archive, if set
}

func snapshotInfo() library.SnapshotInfo {
	return library.SnapshotInfo{
		ID: "snap-1", SessionID: endedID, UserID: "alice", Mode: "filesystem", CreatedAt: born, ExpiresAt: &born,
		SizeBytes: 45000, Datadir: "clean", Chrome: "156", Engine: "chrome",
	}
}

func (f *fakeLibrary) Snapshots(_ context.Context, _ access.Caller, id string, _ int, _ string) ([]library.SnapshotInfo, string, error) {
	if id == liveID {
		return nil, "", f.failure()
	}
	return []library.SnapshotInfo{snapshotInfo()}, "snap-1", f.failure()
}

func (f *fakeLibrary) AllSnapshots(_ context.Context, _ access.Caller, user string, _ int, _ string) ([]library.SnapshotInfo, string, error) {
	f.mu.Lock()
	f.owners = append(f.owners, user)
	f.mu.Unlock()
	return []library.SnapshotInfo{snapshotInfo()}, "snap-1", f.failure()
}

func (f *fakeLibrary) Snapshot(context.Context, access.Caller, string) (library.SnapshotInfo, error) {
	return snapshotInfo(), f.failure()
}

func (f *fakeLibrary) Diff(_ context.Context, _ access.Caller, from, to string, values bool) (library.Diff, error) {
	c := state.Change{Name: "cookies", Origin: "a.example", Added: []string{}, Removed: []string{}, Changed: []string{"login"}, Before: 1, After: 1}
	was, is := "1", "2"
	c.Attributes = map[string]map[string]*state.Values{"login": {"expires": {After: &is}, "value": nil}}
	if values {
		c.Values = map[string]state.Values{"login": {Before: &was, After: &is}}
	}
	return library.Diff{From: from, To: to, Changes: []state.Change{c},
		NotCompared: []state.Uncompared{{Name: "hsts", Reason: "it was not counted"}}}, f.failure()
}

// Prune reports one snapshot to remove and one to keep.
func (f *fakeLibrary) Prune(_ context.Context, _ access.Caller, r library.PruneRequest) (library.PruneAnswer, error) {
	f.mu.Lock()
	f.owners = append(f.owners, r.UserID)
	f.mu.Unlock()
	one := library.PrunedSnapshot{ID: "snap-1", SessionID: endedID, UserID: "alice", CreatedAt: born.UTC(), SizeBytes: 45000}
	a := library.PruneAnswer{DryRun: r.DryRun, RemovedCount: 1, FreedBytes: 45000, Removed: []library.PrunedSnapshot{one},
		KeptCount: 1, KeptBy: map[library.Reason]int{library.KeptDefault: 1}}
	if r.DryRun {
		a.Kept = []library.KeptSnapshot{{PrunedSnapshot: one, Reasons: []library.Reason{library.KeptDefault}}}
	}
	return a, f.failure()
}

// VerifySnapshot reports a flipped bit.
func (f *fakeLibrary) VerifySnapshot(_ context.Context, _ access.Caller, id string) (library.VerifyResult, error) {
	return library.VerifyResult{SnapshotID: id, Checked: library.VerifyChecks{Document: true},
		Problems: []library.Problem{{Code: fault.ArchiveDamaged, Message: "its archive has another hash"}}, DurationMS: 12}, f.failure()
}

func (f *fakeLibrary) DeleteSnapshot(context.Context, access.Caller, string) error {
	return f.failure()
}

func (f *fakeLibrary) State(_ context.Context, _ access.Caller, id string, r library.Export) (library.ExportResult, error) {
	out := library.ExportResult{Body: []byte(`{"cookies":[]}`), NotExported: lostThings(1)}
	if r.Format == library.FormatNetscape {
		out.Body = []byte("# Netscape HTTP Cookie File\n")
	}
	if f.large != nil {
		out.Body = f.large
		if r.Format != library.FormatNetscape {
			out.Body = slices.Concat([]byte(`"`), f.large, []byte(`"`))
		}
	}
	if id == "long" {
		out.NotExported = lostThings(1000)
	}
	return out, f.failure()
}

func (f *fakeLibrary) DefaultState(ctx context.Context, c access.Caller, _ string, r library.Export) (library.ExportResult, error) {
	return f.State(ctx, c, "snap-1", r)
}

func (f *fakeLibrary) Archive(_ context.Context, _ access.Caller, id string) (io.ReadCloser, error) {
	switch id {
	case "broken":
		return io.NopCloser(&brokenReader{1 << 20}), nil
	case "broken-at-once":
		return io.NopCloser(&brokenReader{0}), nil
	}
	if f.large != nil {
		return io.NopCloser(bytes.NewReader(f.large)), nil
	}
	return io.NopCloser(strings.NewReader("tar.zst")), f.failure()
}

func (f *fakeLibrary) SealedArchive(_ context.Context, _ access.Caller, id string, to []string) (library.SealedArchive, error) {
	body := "sealed to " + strings.Join(to, ",")
	whole := library.SealedArchive{ReadCloser: io.NopCloser(strings.NewReader(body)), Size: int64(len(body)), PayloadSHA256: strings.Repeat("5a", 32)}
	if id == "broken-at-once" {
		whole.ReadCloser = io.NopCloser(&brokenReader{0})
	}
	return whole, f.failure()
}
