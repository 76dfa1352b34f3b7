package session

import (
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
)

const (
	documentID = "01900000-0000-7000-8000-000000000001"
	aDocument  = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{},"appData":{}}`
)

func agentOf(sessionID string) AgentScope {
	return AgentScope{SessionID: sessionID, Scope: "agent", ScopeID: "agent"}
}

// Equal session IDs of two users are apart. A session that has a browser is
// its user's alone, and who acts for that user gets at its documents.
func TestWhoseDocuments(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	hers := r.create(alice, nil).ID
	for _, id := range []string{"default-session", hers} {
		if err := r.SaveDocument(ctx, alice, agentOf(id), documentID, []byte(aDocument), true); err != nil {
			t.Fatal(err)
		}
	}

	_, err := r.Document(ctx, bob, agentOf("default-session"), snapshot.LatestID)
	wantCode(t, err, fault.SnapshotNotFound)
	if err := r.DeleteDocuments(ctx, bob, "default-session"); err != nil { // his own, which are none
		t.Error(err)
	}
	if ids, _, err := r.DocumentIDs(ctx, alice, agentOf("default-session"), 10, ""); err != nil || len(ids) != 1 {
		t.Errorf("alice has %v, %v", ids, err)
	}
	if body, err := r.Document(ctx, admin, agentOf(hers), documentID); err != nil || string(body) != aDocument {
		t.Errorf("who acts for all users gets %s, %v", body, err)
	}

	// Under the ID of her session bob has his own, and hers stay.
	_, err = r.Document(ctx, bob, agentOf(hers), documentID)
	wantCode(t, err, fault.SnapshotNotFound)
	if err := r.SaveDocument(ctx, bob, agentOf(hers), documentID, []byte(aDocument), false); err != nil {
		t.Error(err)
	}
	if err := r.DeleteDocuments(ctx, bob, hers); err != nil {
		t.Error(err)
	}
	if ids, _, err := r.DocumentIDs(ctx, alice, agentOf(hers), 10, ""); err != nil || len(ids) != 1 {
		t.Errorf("alice has %v, %v", ids, err)
	}

	powerless, at := access.Caller{KeyID: "key-0", UserID: "alice"}, agentOf(hers)
	_, loaded := r.Document(ctx, powerless, at, documentID)
	_, _, listed := r.DocumentIDs(ctx, powerless, at, 10, "")
	_, manifest := r.Manifest(ctx, powerless, at)
	for _, err := range []error{
		loaded, listed, manifest, r.SaveDocument(ctx, powerless, at, documentID, []byte(aDocument), false),
		r.SaveManifest(ctx, powerless, at, []byte(`{"schemaVersion":"1.0","updatedAt":"2026-11-22T00:00:00Z"}`)),
		r.DeleteDocument(ctx, powerless, at, documentID), r.DeleteDocuments(ctx, powerless, hers),
	} {
		wantCode(t, err, fault.Forbidden)
	}
}

// Deleting the documents of a session leaves its snapshots, and the other way
// round.
func TestDocumentsAndSnapshotsAreApart(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	hers, snap := r.saved(alice, EndRequest{Mode: SaveFilesystem})
	if err := r.SaveDocument(ctx, alice, agentOf(hers), snapshot.LatestID, []byte(aDocument), false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.DeleteDocument(ctx, alice, AgentScope{hers, "agent", "browser"}, snap), fault.ScopeReserved)
	if err := r.DeleteDocuments(ctx, alice, hers); err != nil {
		t.Fatal(err)
	}
	_, err := r.Document(ctx, alice, agentOf(hers), snapshot.LatestID)
	wantCode(t, err, fault.SnapshotNotFound)
	if _, err := r.Vault.Latest(ctx, library.LocationOf("alice", hers)); err != nil {
		t.Errorf("the browser's snapshot: %v", err)
	}

	if err := r.SaveDocument(ctx, alice, agentOf(hers), snapshot.LatestID, []byte(aDocument), false); err != nil {
		t.Fatal(err)
	}
	if err := r.library.DeleteSnapshot(ctx, alice, snap); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Document(ctx, alice, agentOf(hers), snapshot.LatestID); err != nil {
		t.Errorf("the agent's document: %v", err)
	}
}
