// Package importer makes snapshots of environments that were saved elsewhere: archives of
// Stasis, profiles of ordinary Chromes, and files of cookies and storage.
//
// An import takes an upload and its format. It makes a snapshot that belongs to a new
// session, which has ended. An upload is hostile input: it is read by a process without
// rights ([Child]), and names, sizes and counts are checked before a file is written. An
// upload that does not have its format is invalid_import.
package importer

import (
	"context"
	"io"
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

// Archives decrypts sealed archives and checks that the store has space; see
// [snapshot.Vault].
type Archives interface {
	UnsealUpload(ctx context.Context, file *os.File, plain io.Writer) (sealed bool, err error)
	CheckSpace(ctx context.Context, need int64) error
}

// Datadirs is what an import needs to know of Chrome's user data directories;
// browser/profile's Disk implements it.
type Datadirs interface {
	// Select lists the files that belong into an archive, sorted by name.
	Select(ctx context.Context, userDataDir string) ([]browser.File, error)
}

// Dirs makes run directories; see browsers.Launcher. The caller removes them.
type Dirs interface {
	NewDir() (*browser.Dir, error)
}

// Keys are the callers' API keys; see [access.Keys].
type Keys interface {
	// CallContext returns a context that ends with ctx or when the caller's key is deleted.
	CallContext(ctx context.Context, c access.Caller) (_ context.Context, leave func(), err error)
}

// Turns limits how many imports are read at once; see capacity.Turns.
type Turns interface {
	Take(ctx context.Context, userID string) (leave func(), err error)
}

// Quotas limit imports.
type Quotas interface {
	// Begin counts an import for a user and the caller's key until release is called.
	Begin(ctx context.Context, c access.Caller, userID string) (release func(), err error)
	// Admission returns what refuses an import beyond the quotas of storage. The error is
	// quota_exceeded if they are used up. admit is nil if there is no such quota.
	Admission(ctx context.Context, userID, keyID string) (admit func(user, key profiles.Stored) error, err error)
}

// Saver makes snapshots; see [save.Saver].
type Saver interface {
	CheckFits(files []browser.File, doc state.Document) error
	Keep(ctx context.Context, j save.Job, doc state.Document, files []browser.File) (_ save.EndAnswer, problem string, _ error)
	MoveDefault(ctx context.Context, snap profiles.Snapshot, m profiles.Move, checked *login.Outcome) (*save.DefaultOutcome, error)
}

// Checker makes login checks in separate Chromes; see [login.Checker].
type Checker interface {
	BeforeDefault(ctx context.Context, c access.Caller, snap profiles.Snapshot, check settings.LoginCheck) login.Outcome
}

// Config is what an Importer needs.
type Config struct {
	Records  Records
	Archives Archives
	Datadirs Datadirs
	Reader   Reader
	Dirs     Dirs
	Keys     Keys
	Quotas   Quotas
	Turns    Turns // for imports whose upload is complete, [MaxImports] at once
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
