package agent

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
)

// Scope is where an agent stores its documents.
type Scope struct {
	SessionID string // this session need not have a browser
	Scope     string // "agent" or "multiAgent"
	ScopeID   string // the agent's ID; "browser" and "notes" are reserved for Stasis
}

// DocumentStore stores documents byte for byte; see [snapshot.Documents].
type DocumentStore interface {
	Save(ctx context.Context, loc snapshot.Location, id string, body []byte, latest bool) error
	Load(ctx context.Context, loc snapshot.Location, id string) ([]byte, error)
	List(ctx context.Context, loc snapshot.Location, limit int, startAfter string) (ids []string, next string, err error)
	Delete(ctx context.Context, loc snapshot.Location, id string) error
	Manifest(ctx context.Context, loc snapshot.Location) ([]byte, error)
	SaveManifest(ctx context.Context, loc snapshot.Location, body []byte) error
	// HasSession reports whether an owner has any document in a session. DeleteSession
	// removes all of them.
	HasSession(ctx context.Context, owner, session string) (bool, error)
	DeleteSession(ctx context.Context, owner, session string) error
}

// Documents manages the documents of agents. Its methods are safe for concurrent use. An
// invalid scope, ID or body is an error that names it.
type Documents struct {
	sessions Sessions
	store    DocumentStore
}

// NewDocuments makes Documents over a store.
func NewDocuments(sessions Sessions, store DocumentStore) *Documents {
	return &Documents{sessions, store}
}

// MaySave returns an error if the caller may not store documents in a scope. It is called
// before the body is read.
func (d *Documents) MaySave(ctx context.Context, c access.Caller, at Scope) error {
	_, err := d.locate(ctx, c, at, access.Drive)
	return err
}

// SaveDocument stores a document under an ID; an ID can be used once. With latest it also
// becomes the scope's latest; see [snapshot.Documents.Save].
func (d *Documents) SaveDocument(ctx context.Context, c access.Caller, at Scope, id string, body []byte, latest bool) error {
	loc, err := d.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return d.store.Save(ctx, loc, id, body, latest)
}

// Document returns a document by its ID, or the latest for [snapshot.LatestID].
func (d *Documents) Document(ctx context.Context, c access.Caller, at Scope, id string) ([]byte, error) {
	loc, err := d.locate(ctx, c, at, access.Look)
	if err != nil {
		return nil, err
	}
	return d.store.Load(ctx, loc, id)
}

// DocumentIDs lists the IDs of a scope's immutable documents, oldest first.
func (d *Documents) DocumentIDs(ctx context.Context, c access.Caller, at Scope, limit int, startAfter string) (ids []string, next string, err error) {
	loc, err := d.locate(ctx, c, at, access.Look)
	if err != nil {
		return nil, "", err
	}
	return d.store.List(ctx, loc, limit, startAfter)
}

// DeleteDocument removes one document of a scope.
func (d *Documents) DeleteDocument(ctx context.Context, c access.Caller, at Scope, id string) error {
	loc, err := d.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return d.store.Delete(ctx, loc, id)
}

// Manifest returns a scope's manifest, or a new one if none was saved.
func (d *Documents) Manifest(ctx context.Context, c access.Caller, at Scope) ([]byte, error) {
	loc, err := d.locate(ctx, c, at, access.Look)
	if err != nil {
		return nil, err
	}
	return d.store.Manifest(ctx, loc)
}

// SaveManifest replaces a scope's manifest.
func (d *Documents) SaveManifest(ctx context.Context, c access.Caller, at Scope, body []byte) error {
	loc, err := d.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return d.store.SaveManifest(ctx, loc, body)
}

// DeleteDocuments removes all documents and manifests that agents have in a session. The
// session itself and its snapshots stay. It may be called more than once.
func (d *Documents) DeleteDocuments(ctx context.Context, c access.Caller, sessionID string) error {
	owner, err := d.owner(ctx, c, sessionID, access.Drive)
	if err != nil {
		return err
	}
	return d.store.DeleteSession(ctx, owner, sessionID)
}

func (d *Documents) locate(ctx context.Context, c access.Caller, at Scope, p access.Permission) (snapshot.Location, error) {
	owner, err := d.owner(ctx, c, at.SessionID, p)
	return snapshot.Location{Owner: owner, Session: at.SessionID, Scope: at.Scope, ScopeID: at.ScopeID}, err
}

// owner returns who owns a session's documents, for a caller with the permission p.
func (d *Documents) owner(ctx context.Context, c access.Caller, sessionID string, p access.Permission) (string, error) {
	rec, err := owner(ctx, d.sessions, c, sessionID, p, func() (bool, error) {
		return d.store.HasSession(ctx, profiles.OwnerOf(c.UserID), sessionID)
	})
	return profiles.OwnerOf(rec.UserID), err
}
