package api

import (
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// A document reaches the service byte for byte, with all names of its path, and is returned
// byte for byte.
func TestDocumentsAreUnchanged(t *testing.T) {
	r := newRig(t, nil)
	sent := "\n " + strings.Replace(document, `"data":`, `"data" :`, 1)
	if answer, body := r.do(t, "PUT", "/v1/sessions/any/scopes/multiAgent/desk/snapshots/"+documentID+"?latest=true", sent); answer.StatusCode != 204 || body != "" {
		t.Errorf("got %d %s", answer.StatusCode, body)
	}
	if got := string(r.uploads["{any multiAgent desk}"+documentID+"true"]); got != sent {
		t.Errorf("the service got %q of %v", got, r.uploads)
	}
	answer, body := r.do(t, "GET", "/v1/sessions/any/scopes/agent/desk/snapshots/latest", "")
	if answer.Header.Get("Content-Type") != "application/json" || body != document {
		t.Errorf("got %s %s", answer.Header.Get("Content-Type"), body)
	}
}

// The service refuses a document that is too large, and need not read all of it. A form is
// not a document.
func TestDocumentBodies(t *testing.T) {
	r := newRig(t, nil)
	r.client.Transport = nil // the requests are not as described
	const at = "/v1/sessions/any/scopes/agent/desk/snapshots/latest"
	r.do(t, "PUT", at, strings.Repeat(" ", snapshot.MaxAgentDocument+5))
	if got := len(r.uploads["{any agent desk}latestfalse"]); got != snapshot.MaxAgentDocument+1 {
		t.Errorf("the service got %d bytes", got)
	}
	r.err = fault.New(fault.SnapshotExists, "fake", "")
	if answer, body := r.do(t, "PUT", at, document); answer.StatusCode != 409 || !strings.Contains(body, `"snapshot_exists"`) {
		t.Errorf("got %d %s", answer.StatusCode, body)
	}
	answer, body := r.do(t, "PUT", at, document, "Content-Type: application/x-www-form-urlencoded")
	if answer.StatusCode != 400 || !strings.Contains(body, "Content-Type: must be application/json") {
		t.Errorf("got %d %s", answer.StatusCode, body)
	}
}
