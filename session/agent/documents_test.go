package agent

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

const (
	documentID     = "01900000-0000-7000-8000-000000000001"
	sampleDocument = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{},"appData":{}}`
)

func scope(sessionID string) Scope {
	return Scope{SessionID: sessionID, Scope: "agent", ScopeID: "agent"}
}

// Two users can use the same session ID without sharing documents. The documents of a
// session with a browser belong to its user, and callers that may act for that user can
// read them.
func TestWhoseDocuments(t *testing.T) {
	const hers = "her-session"
	documents := NewDocuments(sessions(profiles.Session{ID: hers, UserID: "alice", KeyID: alice.KeyID}),
		snapshot.NewDocuments(memstore.New(0, time.Now), snapshot.Options{Now: clock()}))
	ctx := t.Context()
	for _, id := range []string{"default-session", hers} {
		if err := documents.SaveDocument(ctx, alice, scope(id), documentID, []byte(sampleDocument), true); err != nil {
			t.Fatal(err)
		}
	}

	_, err := documents.Document(ctx, bob, scope("default-session"), snapshot.LatestID)
	wantCode(t, err, fault.SnapshotNotFound)
	if err := documents.DeleteDocuments(ctx, bob, "default-session"); err != nil { // bob's own: there are none
		t.Error(err)
	}
	if ids, _, err := documents.DocumentIDs(ctx, alice, scope("default-session"), 10, ""); err != nil || len(ids) != 1 {
		t.Errorf("alice has %v, %v", ids, err)
	}
	if body, err := documents.Document(ctx, admin, scope(hers), documentID); err != nil || string(body) != sampleDocument {
		t.Errorf("a caller for all users gets %s, %v", body, err)
	}

	// Under the ID of alice's session bob can store his own documents, and hers stay.
	_, err = documents.Document(ctx, bob, scope(hers), documentID)
	wantCode(t, err, fault.SnapshotNotFound)
	if err := documents.SaveDocument(ctx, bob, scope(hers), documentID, []byte(sampleDocument), false); err != nil {
		t.Error(err)
	}
	if err := documents.DeleteDocuments(ctx, bob, hers); err != nil {
		t.Error(err)
	}
	if ids, _, err := documents.DocumentIDs(ctx, alice, scope(hers), 10, ""); err != nil || len(ids) != 1 {
		t.Errorf("alice has %v, %v", ids, err)
	}

	powerless, there := access.Caller{KeyID: "key-0", UserID: "alice"}, scope(hers)
	_, loaded := documents.Document(ctx, powerless, there, documentID)
	_, _, listed := documents.DocumentIDs(ctx, powerless, there, 10, "")
	_, manifest := documents.Manifest(ctx, powerless, there)
	for _, err := range []error{
		loaded, listed, manifest, documents.SaveDocument(ctx, powerless, there, documentID, []byte(sampleDocument), false),
		documents.SaveManifest(ctx, powerless, there, []byte(`{"schemaVersion":"1.0","updatedAt":"2026-11-22T00:00:00Z"}`)),
		documents.DeleteDocument(ctx, powerless, there, documentID), documents.DeleteDocuments(ctx, powerless, hers),
	} {
		wantCode(t, err, fault.Forbidden)
	}
}
