// Package importer makes snapshots of environments that were saved elsewhere: archives
// of Stasis, profiles of ordinary Chromes, and files of cookies and storage.
//
// In goes an upload and its format; out comes a snapshot that belongs to a session
// of its own, which has ended. An upload is hostile input: names, sizes and counts are
// checked before a file is written. What does not have its format is invalid_import.
package importer

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Records is what imports need of the catalogue; see [profiles.SnapshotStore] and
// [profiles.DefaultStore].
type Records interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
}

// Archives opens what is imported and checks that the store has room; see
// [snapshot.Vault].
type Archives interface {
	OpenForeign(file *os.File) (*snapshot.Foreign, error)
	CheckRoom(ctx context.Context, need int64) error
}

// Datadirs is what an import needs of Chrome's user data directories; browser/profile's
// Disk is this interface.
type Datadirs interface {
	// Select lists what belongs into an archive, sorted by name.
	Select(ctx context.Context, userDataDir string) ([]browser.File, error)
	// LeftOut is why a file of an archive may not be unpacked; "" where it may.
	LeftOut(name string) string
	// FindDesktop finds a profile of an ordinary Chrome by its folder's name ("": the
	// usual one) among the names of an archive; OriginOf looks at it once it is unpacked.
	FindDesktop(names []string, folder string) (browser.Desktop, error)
	OriginOf(ctx context.Context, userDataDir string, kept map[string][]byte) (browser.DesktopOrigin, error)
}

// Dirs makes run directories; see browsers.Launcher. The caller removes them.
type Dirs interface {
	NewDir() (*browser.Dir, error)
}

// Keys are the API keys that callers come with; see [access.Keys].
type Keys interface {
	// While is ctx until the caller's key is deleted.
	While(ctx context.Context, c access.Caller) (_ context.Context, leave func(), err error)
}

// Turns bound how many imports are read at once; see capacity.Turns.
type Turns interface {
	Take(ctx context.Context, userID string) (leave func(), err error)
}

// Saver makes snapshots; see [save.Saver].
type Saver interface {
	Fits(files []browser.File, doc state.Document) error
	Keep(ctx context.Context, j save.Job, doc state.Document, files []browser.File) (_ save.EndAnswer, problem string, _ error)
	MoveDefault(ctx context.Context, snap profiles.Snapshot, m profiles.Move, checked *login.Outcome) (*save.DefaultOutcome, error)
}

// Checker runs login checks in Chromes of their own; see [login.Checker].
type Checker interface {
	CheckSnapshot(ctx context.Context, snap profiles.Snapshot, check settings.LoginCheck) (login.Outcome, error)
}

// Config is what an Importer needs.
type Config struct {
	Records  Records
	Archives Archives
	Datadirs Datadirs
	Dirs     Dirs
	Keys     Keys
	Turns    Turns // of imports whose upload is there, [MaxImports] at once
	Saver    Saver
	Users    *settings.Users
	Login    Checker
	Unpack   snapshot.Limits // what an archive may unpack to
	Meter    save.Meter
	Now      func() time.Time
	Log      *slog.Logger
}

// Importer makes snapshots of what was saved elsewhere. Its methods are safe for
// concurrent use.
type Importer struct {
	cfg     Config
	uploads *uploads
}

// New makes an Importer.
func New(cfg Config) *Importer { return &Importer{cfg: cfg, uploads: newUploads()} }
