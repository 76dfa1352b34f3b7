package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
)

// AgentScope is where an agent keeps documents of its own.
type AgentScope struct {
	SessionID string // of a session that need never have had a browser
	Scope     string // "agent" or "multiAgent"
	ScopeID   string // the agent's; "browser" and "notes" are Stasis's own
}

// MaySave refuses a caller that may not keep documents there, before its body is
// read.
func (s *Service) MaySave(ctx context.Context, c access.Caller, at AgentScope) error {
	_, err := s.locate(ctx, c, at, access.Drive)
	return err
}

// SaveDocument keeps an agent's document under an ID, once, and with latest as
// the scope's latest too; see [snapshot.Documents.Save].
func (s *Service) SaveDocument(ctx context.Context, c access.Caller, at AgentScope, id string, body []byte, latest bool) error {
	loc, err := s.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return s.Documents.Save(ctx, loc, id, body, latest)
}

// Document gives an agent's document by its ID, or by [snapshot.LatestID] the
// latest.
func (s *Service) Document(ctx context.Context, c access.Caller, at AgentScope, id string) ([]byte, error) {
	loc, err := s.locate(ctx, c, at, access.Look)
	if err != nil {
		return nil, err
	}
	return s.Documents.Load(ctx, loc, id)
}

// DocumentIDs lists the IDs of a scope's immutable documents, oldest first.
func (s *Service) DocumentIDs(ctx context.Context, c access.Caller, at AgentScope, limit int, startAfter string) (ids []string, next string, err error) {
	loc, err := s.locate(ctx, c, at, access.Look)
	if err != nil {
		return nil, "", err
	}
	return s.Documents.List(ctx, loc, limit, startAfter)
}

// DeleteDocument removes one document of a scope.
func (s *Service) DeleteDocument(ctx context.Context, c access.Caller, at AgentScope, id string) error {
	loc, err := s.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return s.Documents.Delete(ctx, loc, id)
}

// Manifest gives a scope's manifest, a new one where none was saved.
func (s *Service) Manifest(ctx context.Context, c access.Caller, at AgentScope) ([]byte, error) {
	loc, err := s.locate(ctx, c, at, access.Look)
	if err != nil {
		return nil, err
	}
	return s.Documents.Manifest(ctx, loc)
}

// SaveManifest writes a scope's manifest over the one before.
func (s *Service) SaveManifest(ctx context.Context, c access.Caller, at AgentScope, body []byte) error {
	loc, err := s.locate(ctx, c, at, access.Drive)
	if err != nil {
		return err
	}
	return s.Documents.SaveManifest(ctx, loc, body)
}

// DeleteDocuments removes all documents and manifests that agents have in a
// session; the session itself and its snapshots stay. It is idempotent.
func (s *Service) DeleteDocuments(ctx context.Context, c access.Caller, sessionID string) error {
	owner, err := s.ownerOf(ctx, c, sessionID, access.Drive)
	if err != nil {
		return err
	}
	return s.Documents.DeleteSession(ctx, owner, sessionID)
}

func (s *Service) locate(ctx context.Context, c access.Caller, at AgentScope, p access.Permission) (snapshot.Location, error) {
	owner, err := s.ownerOf(ctx, c, at.SessionID, p)
	return snapshot.Location{Owner: owner, Session: at.SessionID, Scope: at.Scope, ScopeID: at.ScopeID}, err
}

// ownerOf is whose a session's documents are, for who looks at them or, with
// drive, changes them; see [Service.keptUnder].
func (s *Service) ownerOf(ctx context.Context, c access.Caller, sessionID string, p access.Permission) (string, error) {
	rec, err := s.keptUnder(ctx, c, sessionID, p, func() (bool, error) {
		return s.Documents.HasSession(ctx, profiles.OwnerOf(c.UserID), sessionID)
	})
	return profiles.OwnerOf(rec.UserID), err
}

// keptUnder is the record that says whose an agent's documents and notes under a
// session ID are. The key's own user comes first: has tells whether that one has
// some there. Otherwise they are the user's of the session with that ID, if the caller
// may act for it. Another user's session with that ID takes nothing away.
func (s *Service) keptUnder(ctx context.Context, c access.Caller, sessionID string, p access.Permission, has func() (bool, error)) (profiles.Session, error) {
	rec, err := s.record(ctx, c, sessionID, p)
	own := profiles.Session{UserID: c.UserID}
	switch {
	case fault.Is(err, fault.SessionNotFound):
		if p == access.Drive {
			p = access.Manage
		}
		return own, c.Require(p)
	case err != nil || rec.UserID == c.UserID:
		return rec, err
	}
	if found, err := has(); found || err != nil {
		return own, err
	}
	return rec, nil
}
