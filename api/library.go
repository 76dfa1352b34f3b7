package api

import (
	"context"
	"io"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
)

// Library is what is kept and looked at without a live session: defaults, snapshots
// and what is read from them. As with [Service], every method checks what the caller
// may do.
type Library interface {
	defaults
	snapshots
	exports
}

type defaults interface {
	Default(ctx context.Context, c access.Caller, userID string) (library.Default, error)
	SetDefault(ctx context.Context, c access.Caller, userID, snapshotID string, ifVersion *int64) (library.Default, error)
	DeleteDefault(ctx context.Context, c access.Caller, userID string) error
	DefaultHistory(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) (page []library.PastDefault, next string, err error)
}

type snapshots interface {
	Snapshots(ctx context.Context, c access.Caller, sessionID string, limit int, startAfter string) (page []library.SnapshotInfo, next string, err error)
	// AllSnapshots lists a user's; userID "" is everybody that the caller may act for.
	AllSnapshots(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) (page []library.SnapshotInfo, next string, err error)
	Snapshot(ctx context.Context, c access.Caller, id string) (library.SnapshotInfo, error)
	DeleteSnapshot(ctx context.Context, c access.Caller, id string) error
	// VerifySnapshot fails only where the snapshot could not be looked at.
	VerifySnapshot(ctx context.Context, c access.Caller, id string) (library.VerifyResult, error)
	Diff(ctx context.Context, c access.Caller, from, to string, values bool) (library.Diff, error)
}

// exports give environments to other tools.
type exports interface {
	State(ctx context.Context, c access.Caller, id string, r library.Export) (library.Exported, error)
	DefaultState(ctx context.Context, c access.Caller, userID string, r library.Export) (library.Exported, error)
	// Archive streams; damage is the reader's error, at its end at the latest.
	Archive(ctx context.Context, c access.Caller, id string) (io.ReadCloser, error)
	SealedArchive(ctx context.Context, c access.Caller, id string, to []string) (library.SealedArchive, error)
}

// Pruner removes the snapshots that no retention policy keeps.
type Pruner interface {
	Prune(ctx context.Context, c access.Caller, r library.PruneRequest) (library.PruneAnswer, error)
}

// Extensions are the extensions that users uploaded.
type Extensions interface {
	// PutExtension stores what r gives, a zip or a .crx; fresh is false where
	// the caller's user has the same one already.
	PutExtension(ctx context.Context, c access.Caller, r io.Reader) (e library.Extension, fresh bool, err error)
	ListExtensions(ctx context.Context, c access.Caller) ([]library.Extension, error)
	Extension(ctx context.Context, c access.Caller, id string) (library.Extension, error)
	DeleteExtension(ctx context.Context, c access.Caller, id string, force bool) error
}

var (
	_ Library    = (*library.Library)(nil)
	_ Pruner     = (*library.Pruner)(nil)
	_ Extensions = (*library.Extensions)(nil)
)
