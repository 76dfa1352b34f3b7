package session

import (
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
)

// Deleting a session's documents leaves its snapshots, and vice versa.
func TestDocumentsAndSnapshotsAreIndependent(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	documents := r.documents
	hers, snap := r.saved(alice, request.End{Mode: save.Filesystem})
	at := agent.Scope{SessionID: hers, Scope: "agent", ScopeID: "agent"}
	const aDocument = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{},"appData":{}}`
	if err := documents.SaveDocument(ctx, alice, at, snapshot.LatestID, []byte(aDocument), false); err != nil {
		t.Fatal(err)
	}
	wantCode(t, documents.DeleteDocument(ctx, alice, agent.Scope{SessionID: hers, Scope: "agent", ScopeID: "browser"}, snap), fault.ScopeReserved)
	if err := documents.DeleteDocuments(ctx, alice, hers); err != nil {
		t.Fatal(err)
	}
	_, err := documents.Document(ctx, alice, at, snapshot.LatestID)
	wantCode(t, err, fault.SnapshotNotFound)
	if _, err := r.deps.Vault.Latest(ctx, library.LocationOf("alice", hers)); err != nil {
		t.Errorf("the browser's snapshot: %v", err)
	}

	if err := documents.SaveDocument(ctx, alice, at, snapshot.LatestID, []byte(aDocument), false); err != nil {
		t.Fatal(err)
	}
	if err := r.library.DeleteSnapshot(ctx, alice, snap); err != nil {
		t.Fatal(err)
	}
	if _, err := documents.Document(ctx, alice, at, snapshot.LatestID); err != nil {
		t.Errorf("the agent's document: %v", err)
	}
}
