package session

import (
	"context"
	"io"
	"time"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// maxChecked bounds how many extensions are checked at once, one of each user: the
// lists of files and of texts in one take many times their bytes of memory.
const maxChecked = 2

// Extension is what a caller is told of an uploaded extension; it is the wire shape.
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

// PutExtension reads an extension, a zip or a .crx, and keeps it for the
// caller's user, in place of another version of the same ID. fresh is false
// where the user has the very same one already.
func (s *Service) PutExtension(ctx context.Context, c access.Caller, r io.Reader) (_ Extension, fresh bool, err error) {
	if err := c.Require(access.Manage); err != nil {
		return Extension{}, false, err
	}
	ctx, leave, err := s.Keys.While(ctx, c)
	if err != nil {
		return Extension{}, false, err
	}
	defer leave()
	var e profiles.Extension
	turn := func(ctx context.Context) (func(), error) { return s.packages.Take(ctx, c.UserID) }
	err = s.Extensions.Put(ctx, access.Reader(ctx, r), turn, func(i extension.Info) (unused string, err error) {
		e, fresh, unused, err = s.Catalogue.PutExtension(ctx, profiles.Extension{ID: i.ID, UserID: c.UserID, SHA256: i.SHA256,
			Name: i.Name, Version: i.Version, SizeBytes: i.Size, CreatedAt: s.Now().UTC()})
		return unused, err
	})
	return extensionOf(e), fresh, access.OrKeyDeleted(ctx, err)
}

// ListExtensions lists what the caller may use, newest first.
func (s *Service) ListExtensions(ctx context.Context, c access.Caller) ([]Extension, error) {
	records, err := s.usableExtensions(ctx, c)
	return each(records, extensionOf), err
}

func (s *Service) usableExtensions(ctx context.Context, c access.Caller) ([]profiles.Extension, error) {
	if err := c.Require(access.Look); err != nil {
		return nil, err
	}
	userID := c.UserID
	if c.ForEveryUser() {
		userID = ""
	}
	return s.Catalogue.Extensions(ctx, userID)
}

// Extension tells of one extension: the caller's own, else the newest of that
// ID that it may use.
func (s *Service) Extension(ctx context.Context, c access.Caller, id string) (Extension, error) {
	if err := c.Require(access.Look); err != nil {
		return Extension{}, err
	}
	e, err := s.findExtension(ctx, c, c.UserID, id)
	return extensionOf(e), err
}

// DeleteExtension forgets an extension. While a snapshot of its user has it, it
// is extension_in_use unless force; the snapshots keep their own bytes.
func (s *Service) DeleteExtension(ctx context.Context, c access.Caller, id string, force bool) error {
	if err := c.Require(access.Manage); err != nil {
		return err
	}
	e, err := s.Extension(ctx, c, id)
	if err != nil {
		return err
	}
	return s.Extensions.Delete(func() (string, error) {
		return s.Catalogue.DeleteExtension(ctx, e.UserID, e.ID, force)
	})
}

// findExtension looks for an extension among a user's, then among those that
// the caller may use.
func (s *Service) findExtension(ctx context.Context, c access.Caller, userID, id string) (profiles.Extension, error) {
	e, err := s.Catalogue.Extension(ctx, userID, id)
	if !fault.Is(err, fault.ExtensionNotFound) {
		return e, err
	}
	all, err := s.usableExtensions(ctx, c)
	if err != nil {
		return profiles.Extension{}, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return profiles.Extension{}, fault.New(fault.ExtensionNotFound, "session.extension", "there is no extension %s", id)
}

// namedExtensions are those that a create asks for: the session's user's own,
// else the caller's. A third user's are not looked at, whoever asks: anybody can
// give an extension the ID of another.
func (s *Service) namedExtensions(ctx context.Context, c access.Caller, userID string, ids []string) ([]profiles.Extension, error) {
	var named []profiles.Extension
	for _, id := range ids {
		e, err := s.Catalogue.Extension(ctx, userID, id)
		if fault.Is(err, fault.ExtensionNotFound) {
			e, err = s.Catalogue.Extension(ctx, c.UserID, id)
		}
		if fault.Is(err, fault.ExtensionNotFound) {
			return nil, fault.New(fault.ExtensionNotFound, "session.create", "extensions: there is no extension %s; upload it first", id)
		}
		if err != nil {
			return nil, err
		}
		named = append(named, e)
	}
	return named, nil
}
