package session

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Restoring a state document takes many times its bytes of memory, so of the large
// ones, from largeState bytes on, only maxLarge are restored at once.
const (
	largeState = 2 << 20
	maxLarge   = 2
)

// archives gives restores the files of environments.
type archives struct{ svc *Service }

// Open reads a snapshot's document.
func (a archives) Open(ctx context.Context, row profiles.Snapshot) (snapshot.Snapshot, error) {
	return a.svc.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
}

// Hold keeps a snapshot from being removed until release is called.
func (a archives) Hold(ctx context.Context, row profiles.Snapshot) (release func(), err error) {
	return a.svc.snapshots.Hold(ctx, row, "restored")
}

// Readable returns an error where no key here opens the archive.
func (a archives) Readable(saved snapshot.Snapshot) error { return a.svc.Vault.Readable(saved) }

// Unpack unpacks the archive into a user data directory. Where its document is
// large it waits for a turn.
func (a archives) Unpack(ctx context.Context, saved snapshot.Snapshot, userDataDir string) (u restore.Unpacked, err error) {
	s := a.svc
	u.Leave = func() {}
	defer func() {
		if err != nil {
			u.Leave()
		}
	}()
	inTurn := func(size int64) error {
		if size < largeState {
			return nil
		}
		leave, err := s.large.Take(ctx, saved.Location.Owner)
		if err == nil {
			u.Leave = leave
		}
		return err
	}
	got, document, err := a.unpack(ctx, saved, userDataDir, inTurn)
	if err != nil {
		return u, err
	}
	u.Document, u.Entries, u.Refused = document, got.Entries, len(got.Refused)
	u.Notes, err = agent.NotesIn(saved)
	return u, err
}

// document unpacks the archive into a user data directory, and waits for no turn.
func (a archives) document(ctx context.Context, saved snapshot.Snapshot, userDataDir string) (state.Document, error) {
	_, document, err := a.unpack(ctx, saved, userDataDir, nil)
	return document, err
}

// unpack calls before, unless it is nil, with the size of the document before that is read.
func (a archives) unpack(ctx context.Context, saved snapshot.Snapshot, userDataDir string, before func(size int64) error) (snapshot.Unpacked, state.Document, error) {
	got, err := a.svc.Vault.Unpack(ctx, saved, userDataDir, snapshot.UnpackOptions{
		Limits: a.svc.cfg.Unpack, Accept: a.svc.accepts, Keep: []string{state.FileName}, BeforeKept: before})
	if err != nil {
		return got, state.Document{}, err
	}
	document, err := library.ParseDocument(saved.ID, got.Kept[state.FileName])
	return got, document, err
}

// Filter takes out of a user data directory what a selection leaves out.
func (a archives) Filter(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error) {
	return a.svc.saver.Filter(ctx, userDataDir, selection)
}

// CopyExtension copies an extension's files, by their hash, to a folder.
func (a archives) CopyExtension(ctx context.Context, sha256, folder string) error {
	return a.svc.Extensions.Copy(ctx, sha256, folder)
}

// Saved returns what the save of a snapshot reported.
func (a archives) Saved(row profiles.Snapshot) restore.Saved {
	r := library.ReportOf(row)
	return restore.Saved{Components: r.Components, Logins: r.Logins, Damaged: r.Damaged}
}

// AwaitRescue waits until what a session left when its daemon died is saved.
func (a archives) AwaitRescue(ctx context.Context, sessionID string) error {
	return a.svc.rescues.Await(ctx, sessionID)
}

// accepts reports whether a file of an archive may be unpacked.
func (s *Service) accepts(name string) bool { return s.Datadirs.LeftOut(name) == "" }
