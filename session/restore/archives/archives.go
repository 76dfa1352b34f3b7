// Package archives opens stored snapshots for restores: it unpacks an environment's files
// and returns what was stored with them.
package archives

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Restoring a state document takes many times its size in memory. Of documents of
// LargeState bytes or more, only MaxLarge are restored at once.
const (
	LargeState = 2 << 20
	MaxLarge   = 2
)

// Vault reads the bytes of snapshots; see [snapshot.Vault].
type Vault interface {
	Open(ctx context.Context, loc snapshot.Location, id string) (snapshot.Snapshot, error)
	Readable(saved snapshot.Snapshot) error
	Unpack(ctx context.Context, saved snapshot.Snapshot, dst string, o snapshot.UnpackOptions) (snapshot.UnpackResult, error)
}

// Snapshots prevents the removal of snapshots while they are read; see
// [library.Snapshots].
type Snapshots interface {
	Hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error)
}

// Datadirs is what unpacking needs to know of Chrome's user data directories;
// browser/profile's Disk implements it.
type Datadirs interface {
	// ExclusionReason returns why a file of an archive may not be unpacked; "" if it may.
	ExclusionReason(name string) string
	// InTail reports whether Chrome can be given a file after the rest of the environment.
	InTail(name string) bool
}

// Extensions keeps the files of uploaded extensions; see extension.Store and extension.Shared.
type Extensions interface {
	// Copy copies an extension's files, by their hash, to a folder.
	Copy(ctx context.Context, sha256, folder string) error
}

// Sessions is what restores need of saves and rescues.
type Sessions interface {
	// Filter removes from a user data directory what the selection leaves out.
	Filter(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error)
	// AwaitRescue waits until the rescue of a session has ended.
	AwaitRescue(ctx context.Context, sessionID string) error
}

// Turns limits how many large documents are restored at once; see capacity.Turns.
type Turns interface {
	// Take waits for a turn of this user until ctx ends. leave ends the turn; it is
	// called once.
	Take(ctx context.Context, userID string) (leave func(), err error)
}

// Config is what New needs.
type Config struct {
	Vault      Vault
	Snapshots  Snapshots
	Datadirs   Datadirs
	Extensions Extensions
	Sessions   Sessions
	Large      Turns
	Unpack     snapshot.Limits // what an archive may unpack to
}

// Archives gives restores the files of environments. Its methods are safe for
// concurrent use.
type Archives struct{ cfg Config }

var _ restore.Archives = (*Archives)(nil)

// New makes Archives.
func New(cfg Config) *Archives { return &Archives{cfg: cfg} }

// Open reads a snapshot's document.
func (a *Archives) Open(ctx context.Context, row profiles.Snapshot) (snapshot.Snapshot, error) {
	return a.cfg.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
}

// Hold prevents the removal of a snapshot until release is called.
func (a *Archives) Hold(ctx context.Context, row profiles.Snapshot) (release func(), err error) {
	return a.cfg.Snapshots.Hold(ctx, row, "restored")
}

// Readable returns an error if no key of this daemon opens the archive.
func (a *Archives) Readable(saved snapshot.Snapshot) error { return a.cfg.Vault.Readable(saved) }

// Unpack unpacks the archive into a user data directory. If its document is large, Unpack
// first waits for a turn. If into is not nil and the archive has a head, Unpack returns when
// that is unpacked.
func (a *Archives) Unpack(ctx context.Context, saved snapshot.Snapshot, userDataDir string, into *restore.TailFolder) (u restore.UnpackResult, err error) {
	u.Release = func() {}
	defer func() {
		if err != nil {
			u.Release()
		}
	}()
	inTurn := func(size int64) error {
		if size < LargeState {
			return nil
		}
		leave, err := a.cfg.Large.Take(ctx, saved.Location.Owner)
		if err == nil {
			u.Release = leave
		}
		return err
	}
	o := snapshot.UnpackOptions{Limits: a.cfg.Unpack, Accept: a.accepts, Keep: []string{state.FileName}, BeforeKept: inTurn}
	var got snapshot.UnpackResult
	var t *tail
	if into != nil && saved.Archive.Head.Entries > 0 {
		o.Owner = &into.Owner
		got, t, err = a.unpackHead(ctx, saved, userDataDir, into.Path, o)
		got.Entries += saved.Archive.Entries - saved.Archive.Head.Entries
	} else {
		got, err = a.cfg.Vault.Unpack(ctx, saved, userDataDir, o)
	}
	if err == nil {
		u.Document, err = library.ParseDocument(saved.ID, got.Kept[state.FileName])
	}
	if err == nil {
		u.Entries, u.Refused = got.Entries, len(got.Refused)
		u.Notes, err = agent.NotesIn(saved)
	}
	if t == nil {
		return u, err
	}
	if err != nil {
		t.Stop()
		return u, err
	}
	u.Tail = t
	return u, nil
}

// Document unpacks the archive into a user data directory without waiting for a turn.
func (a *Archives) Document(ctx context.Context, saved snapshot.Snapshot, userDataDir string) (state.Document, error) {
	got, err := a.cfg.Vault.Unpack(ctx, saved, userDataDir, snapshot.UnpackOptions{
		Limits: a.cfg.Unpack, Accept: a.accepts, Keep: []string{state.FileName}})
	if err != nil {
		return state.Document{}, err
	}
	return library.ParseDocument(saved.ID, got.Kept[state.FileName])
}

// accepts reports whether a file of an archive may be unpacked.
func (a *Archives) accepts(name string) bool { return a.cfg.Datadirs.ExclusionReason(name) == "" }

// Filter removes from a user data directory what the selection leaves out.
func (a *Archives) Filter(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error) {
	return a.cfg.Sessions.Filter(ctx, userDataDir, selection)
}

// AwaitRescue waits until the rescue of a session has ended.
func (a *Archives) AwaitRescue(ctx context.Context, sessionID string) error {
	return a.cfg.Sessions.AwaitRescue(ctx, sessionID)
}

// CopyExtension copies an extension's files, by their hash, to a folder.
func (a *Archives) CopyExtension(ctx context.Context, sha256, folder string) error {
	return a.cfg.Extensions.Copy(ctx, sha256, folder)
}

// SaveReport returns what the save of a snapshot reported.
func (a *Archives) SaveReport(row profiles.Snapshot) restore.SaveReport {
	r := library.ReportOf(row)
	return restore.SaveReport{Components: r.Components, Logins: r.Logins, Damaged: r.Damaged}
}
