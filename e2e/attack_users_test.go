package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// TestAttackUsers calls every route as a user who knows all IDs of another user, and
// repeats the other user's requests.
func TestAttackUsers(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()}))
	_, alice := keyWith(t, d, "alice", "use", "secrets")
	_, eve := keyWith(t, d, "eve", "use", "secrets")
	snap := imports(t, d, "netscape", []byte("127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t"+planted+"\n"), "user_id", "alice", "save_as_default", "true").Snapshot.ID
	hers := beginAs(t, d, alice, obj{"engine": "shell", "session_id": "hers", "labels": obj{"x": planted}})
	upload(t, d, hers.ID, "x", planted)
	doc := tableRow{method: "PUT", path: "/v1/sessions/{session_id}/scopes/{scope}/{scope_id}/snapshots/{snapshot_id}"}
	if got := doc.call(t, d, alice, hers.ID, snap); got != http.StatusNoContent {
		t.Fatalf("her document = %d", got)
	}
	note := obj{"session_id": hers.ID, "open_tasks": []string{planted}}
	if a := d.CallAs(t, alice, http.MethodPost, "/v1/memory/v2/session", note); a.Status != http.StatusOK {
		t.Fatalf("her note = %d %s", a.Status, a.Body)
	}
	kept := func() string {
		a := d.CallAs(t, alice, http.MethodGet, at(hers.ID, "/scopes/agent/planner/snapshots/"+snap), nil)
		b := d.CallAs(t, alice, http.MethodGet, "/v1/memory/v2/session/"+hers.ID, nil)
		return string(a.Body) + string(b.Body)
	}
	before := kept()

	for _, r := range rightsTable(t) {
		own := strings.Contains(r.path, "/scopes") || strings.Contains(r.path, "memory") // eve's own, under the same ID
		named := strings.Contains(r.path, "{session_id}") || strings.Contains(r.path, "{snapshot_id}") || strings.Contains(r.path, "{user_id}")
		switch got := r.call(t, d, eve, hers.ID, snap); {
		case own && got >= 500, !own && named && got != http.StatusNotFound && got != http.StatusForbidden && r.method+r.path != "DELETE/v1/sessions/{session_id}":
			t.Errorf("%s %s = %d", r.method, r.path, got)
		}
		if r.method != http.MethodGet || own || strings.Contains(r.path, "{") {
			continue
		}
		if _, body := plain(t, d, r.method, r.path, http.Header{"Authorization": {"Bearer " + eve}}); strings.Contains(body, planted) || strings.Contains(body, hers.ID+`"`) {
			t.Errorf("%s %s shows %s", r.method, r.path, body)
		}
	}
	if now := kept(); now != before || !strings.Contains(now, planted) {
		t.Errorf("her documents were %s\nand are %s", before, now)
	}
	if s := look(t, d, hers.ID); s.Status != "ready" {
		t.Errorf("her session is %s", s.Status)
	}

	// An Idempotency-Key is valid for one key only.
	for _, path := range []string{"/v1/keys", "/v1/snapshots?format=netscape"} {
		header := http.Header{"Authorization": {"Bearer " + daemon.Key}, "Idempotency-Key": {"one"}, "Content-Type": {"application/json"}}
		body := `{"name":"` + planted + `"}`
		if strings.Contains(path, "netscape") {
			header.Set("Content-Type", "application/octet-stream")
			body = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\tx\n"
		}
		if status, answer := send(t, d, http.MethodPost, path, header, strings.NewReader(body)); status != http.StatusCreated {
			t.Fatalf("POST %s = %d %s", path, status, answer)
		}
		header.Set("Authorization", "Bearer "+eve)
		_, answer := send(t, d, http.MethodPost, path, header, strings.NewReader(body))
		if strings.Contains(answer, planted) || strings.Contains(answer, `"user_id":"default"`) {
			t.Errorf("POST %s repeats another's answer: %s", path, answer)
		}
	}

	// Keys and tickets in the wrong place give no access.
	for _, path := range []string{"/v1/sessions?key=" + alice, "/v1/sessions?api_key=" + alice, "/v1/sessions?x-api-key=" + alice, "/v1/sessions?ticket=" + alice,
		at(hers.ID, "/live?ticket="+alice), at(hers.ID, "/json/list?ticket="+alice), at(hers.ID, "/live?ticket="+ticketIn(hers.CDP)), at("other", "/json/list?ticket="+ticketIn(hers.CDP))} {
		if status, body := plain(t, d, http.MethodGet, path, http.Header{"Authorization": {""}}); status != http.StatusUnauthorized {
			t.Errorf("GET %s = %d %s", path, status, body)
		}
	}
	for _, header := range []http.Header{{"Authorization": {"Bearer " + ticketIn(hers.CDP)}}, {"Authorization": {"Basic " + alice}}, {"Authorization": {""}, "X-Api-Key": {ticketIn(hers.CDP)}}, {"Authorization": {""}, "Cookie": {"key=" + alice}}} {
		if status, body := plain(t, d, http.MethodGet, "/v1/sessions", header); status != http.StatusUnauthorized {
			t.Errorf("with %v = %d %s", header, status, body)
		}
	}
	finish(t, d, hers.ID, throwAway)
	nothingLeft(t, d)
}
