package agent

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
)

// Scope is where an agent keeps documents of its own.
type Scope struct {
	SessionID string // of a session that need never have had a browser
	Scope     string // "agent" or "multiAgent"
	ScopeID   string // the agent's; "browser" and "notes" are Stasis's own
}

// DocumentStore keeps the documents byte for byte; see [snapshot.Documents].
type DocumentStore interface {
	Save(ctx context.Context, loc snapshot.Location, id string, body []byte, latest bool) error
	Load(ctx context.Context, loc snapshot.Location, id string) ([]byte, error)
	List(ctx context.Context, loc snapshot.Location, limit int, startAfter string) (ids []string, next string, err error)
	Delete(ctx context.Context, loc snapshot.Location, id string) error
	Manifest(ctx context.Context, loc snapshot.Location) ([]byte, error)
	SaveManifest(ctx context.Context, loc snapshot.Location, body []byte) error
	// HasSession reports whether an owner has any document in a session;
	// DeleteSession removes them all.
	HasSession(ctx context.Context, owner, session string) (bool, error)
	DeleteSession(ctx context.Context, owner, session string) error
}

// Documents are the documents that agents keep. Its methods are safe for concurrent
// use. What is wrong with a scope, an ID or a body is a fault that names it.
type Documents struct {
	sessions Sessions
	store    DocumentStore
}

// NewDocuments gives the documents of a store.
func NewDocuments(sessions Sessions, store DocumentStore) *Documents {
	return &Documents{sessions, store}
}

// MaySave refuses a caller that may not keep documents in a scope. It is asked before
// the body is read.
func (d *Documents) MaySave(ctx context.Context, c access.Caller, at Scope) error {
	_, err := d.locate(ctx, c, at, access.Drive)
	return err
}

// SaveDocument keeps a document under an ID, once. With latest it becomes the scope's
// latest too; see [snapshot.Documents.Save].
func (d *Documents) SaveDocument(ctx context.Context, c access.Caller, at Scope, id string, body []byte, latest bool) error {
	loc, err := d.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return d.store.Save(ctx, loc, id, body, latest)
}

// Document gives a document by its ID, or the latest by [snapshot.LatestID].
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

// Manifest gives a scope's manifest, a new one where none was saved.
func (d *Documents) Manifest(ctx context.Context, c access.Caller, at Scope) ([]byte, error) {
	loc, err := d.locate(ctx, c, at, access.Look)
	if err != nil {
		return nil, err
	}
	return d.store.Manifest(ctx, loc)
}

// SaveManifest writes a scope's manifest over the one before.
func (d *Documents) SaveManifest(ctx context.Context, c access.Caller, at Scope, body []byte) error {
	loc, err := d.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return d.store.SaveManifest(ctx, loc, body)
}

// DeleteDocuments removes all documents and manifests that agents have in a session.
// The session itself and its snapshots stay. It is idempotent.
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

// owner is whose a session's documents are, for a caller that may do p with them.
func (d *Documents) owner(ctx context.Context, c access.Caller, sessionID string, p access.Permission) (string, error) {
	rec, err := owner(ctx, d.sessions, c, sessionID, p, func() (bool, error) {
		return d.store.HasSession(ctx, profiles.OwnerOf(c.UserID), sessionID)
	})
	return profiles.OwnerOf(rec.UserID), err
}
