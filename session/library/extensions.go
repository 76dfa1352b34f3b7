package library

import (
	"context"
	"io"
	"time"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// MaxExtensionChecks is how many extensions are checked at once, at most one for each
// user: their lists of files and messages take many times their size in memory.
const MaxExtensionChecks = 2

// ExtensionRecords are the catalogue's records of uploaded extensions; see
// [profiles.ExtensionStore].
type ExtensionRecords interface {
	PutExtension(ctx context.Context, e profiles.Extension, packed *io.SectionReader) (is profiles.Extension, fresh bool, unused string, err error)
	Extension(ctx context.Context, userID, id string) (profiles.Extension, error)
	Extensions(ctx context.Context, userID string) ([]profiles.Extension, error)
	DeleteExtension(ctx context.Context, userID, id string, force bool) (unused string, err error)
}

// ExtensionFiles keeps the files of uploaded extensions; see [extension.Store] and, of nodes,
// [extension.Shared].
type ExtensionFiles interface {
	Put(ctx context.Context, r io.Reader, turn func(context.Context) (func(), error), record extension.Record) error
	Delete(forget func() (unused string, err error)) error
}

// ExtensionDeps is what NewExtensions needs. All fields are required.
type ExtensionDeps struct {
	Records ExtensionRecords
	Files   ExtensionFiles
	Keys    Keys
	Checks  Turns // limits checks to [MaxExtensionChecks]
	Now     func() time.Time
}

// Extensions manages the extensions that users uploaded. Each method checks the caller's
// rights. Its methods are safe for concurrent use.
type Extensions struct {
	records ExtensionRecords
	files   ExtensionFiles
	keys    Keys
	checks  Turns
	now     func() time.Time
}

// NewExtensions makes Extensions.
func NewExtensions(d ExtensionDeps) *Extensions {
	return &Extensions{records: d.Records, files: d.Files, keys: d.Keys, checks: d.Checks, now: d.Now}
}

// Extension describes an uploaded extension. It is the wire format.
type Extension struct {
	ID        string    `json:"id"`
	UserID    string    `json:"user_id"`
	SHA256    string    `json:"sha256"` // of its files, hex
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	SizeBytes int64     `json:"size_bytes"` // of its files
	CreatedAt time.Time `json:"created_at"`
}

func extensionOf(e profiles.Extension) Extension {
	return Extension{e.ID, e.UserID, e.SHA256, e.Name, e.Version, e.SizeBytes, e.CreatedAt.UTC()}
}

// PutExtension reads an extension, a zip or a .crx, and stores it for the caller's user.
// It replaces another version of the same ID. fresh is false if the user already has
// exactly this one.
func (x *Extensions) PutExtension(ctx context.Context, c access.Caller, r io.Reader) (_ Extension, fresh bool, err error) {
	if err := c.Require(access.Manage); err != nil {
		return Extension{}, false, err
	}
	ctx, leave, err := x.keys.CallContext(ctx, c)
	if err != nil {
		return Extension{}, false, err
	}
	defer leave()
	var e profiles.Extension
	turn := func(ctx context.Context) (func(), error) { return x.checks.Take(ctx, c.UserID) }
	err = x.files.Put(ctx, access.Reader(ctx, r), turn, func(i extension.Info, packed *io.SectionReader) (unused string, err error) {
		e, fresh, unused, err = x.records.PutExtension(ctx, profiles.Extension{ID: i.ID, UserID: c.UserID, SHA256: i.SHA256,
			Name: i.Name, Version: i.Version, SizeBytes: i.Size, CreatedAt: x.now().UTC()}, packed)
		return unused, err
	})
	return extensionOf(e), fresh, access.OrKeyDeleted(ctx, err)
}

// ListExtensions lists the extensions that the caller may use, newest first.
func (x *Extensions) ListExtensions(ctx context.Context, c access.Caller) ([]Extension, error) {
	records, err := x.usable(ctx, c)
	list := make([]Extension, 0, len(records))
	for _, e := range records {
		list = append(list, extensionOf(e))
	}
	return list, err
}

func (x *Extensions) usable(ctx context.Context, c access.Caller) ([]profiles.Extension, error) {
	if err := c.Require(access.Look); err != nil {
		return nil, err
	}
	userID := c.UserID
	if c.ForEveryUser() {
		userID = ""
	}
	return x.records.Extensions(ctx, userID)
}

// Extension describes one extension: the caller's own, else the newest one with that ID
// that the caller may use.
func (x *Extensions) Extension(ctx context.Context, c access.Caller, id string) (Extension, error) {
	if err := c.Require(access.Look); err != nil {
		return Extension{}, err
	}
	e, err := x.find(ctx, c, c.UserID, id)
	return extensionOf(e), err
}

// DeleteExtension removes an extension. If a snapshot of its user contains it, the error
// is extension_in_use, unless force is set. Snapshots keep their own copy of the files.
func (x *Extensions) DeleteExtension(ctx context.Context, c access.Caller, id string, force bool) error {
	if err := c.Require(access.Manage); err != nil {
		return err
	}
	e, err := x.Extension(ctx, c, id)
	if err != nil {
		return err
	}
	return x.files.Delete(func() (string, error) {
		return x.records.DeleteExtension(ctx, e.UserID, e.ID, force)
	})
}

// find looks for an extension among those of a user, then among all that the caller may
// use.
func (x *Extensions) find(ctx context.Context, c access.Caller, userID, id string) (profiles.Extension, error) {
	e, err := x.records.Extension(ctx, userID, id)
	if !fault.Is(err, fault.ExtensionNotFound) {
		return e, err
	}
	all, err := x.usable(ctx, c)
	if err != nil {
		return profiles.Extension{}, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return profiles.Extension{}, fault.New(fault.ExtensionNotFound, "library.extension", "there is no extension %s", id)
}
