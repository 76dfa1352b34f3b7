package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
)

var writeGolden = flag.String("write-golden", "", "binary of stasis that writes a golden data directory")

// goldenAsked is a create with many options, which a resume must keep.
func goldenAsked(extension string) obj {
	return obj{
		"session_id": "asked", "user_id": "ada", "agent_name": "writer", "goal": "be read again", "labels": obj{"kind": "golden"},
		"timezone": "Asia/Tokyo", "locale": "de-DE", "user_agent": "Golden/1.0", "viewport": obj{"width": 700, "height": 500},
		"geolocation": obj{"latitude": 1.5, "longitude": 2.5}, "extra_headers": obj{"X-Golden": "yes"},
		"permission_policy":    obj{"default_decision": "deny", "rules": []obj{{"permission": "geolocation", "decision": "allow"}}},
		"idle_timeout_seconds": 3000, "max_lifetime_seconds": 30000, "on_timeout": "discard", "on_live": "wait", "restart": "on_crash",
		"record": []string{"console"}, "auto_save": obj{"interval_seconds": 3600, "on": []string{"login"}, "keep": 2},
		"extensions": []string{extension}, "webhook_url": "http://" + goldenAddress + "/hook",
	}
}

// TestWriteGolden writes a golden data directory with the binary of a version,
// for the tests of the versions to come:
//
//	go test ./e2e -run TestWriteGolden -write-golden bin/stasis
//
// Its contents must not depend on the day they are opened. So cookies have no
// expiry, and rescue snapshots are kept for a hundred years. Events, and answers
// kept for an Idempotency-Key, are left out: the daemon drops them with age.
func TestWriteGolden(t *testing.T) {
	if *writeGolden == "" {
		t.Skip("only with -write-golden")
	}
	site := startGolden(t)
	version, err := exec.Command(*writeGolden, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Options{Binary: *writeGolden, NoSpares: true,
		Args: []string{"--webhook-allow-private", "--max-sessions", "8", "--rescue-ttl", forever.String()}})
	site.hooks.trust(t, d.Dir)
	record := goldenRecord{Wrote: strings.TrimSpace(string(version)), Snapshots: map[string]string{}}
	// keeps opens the site in a session and stores a value there.
	keeps := func(s liveSession, value string) {
		w := dial(t, s.CDP)
		page, _ := w.page()
		w.open(page, site.URL+"/")
		if said := w.eval(page, goldenKeep(value)); said != "<nil>" {
			t.Fatalf("%s: %s", s.ID, said)
		}
		if found := w.eval(page, goldenKept); found != goldenFound(value) {
			t.Fatalf("%s: the page finds %q", s.ID, found)
		}
		w.close()
	}
	saves := func(id, query string) {
		record.Snapshots[id] = finish(t, d, id, query).Snapshot.ID
	}
	checkpoint := func(id string) {
		d.Must(t, http.StatusCreated, http.MethodPost, at(id, "/snapshots"), nil)
	}

	// Ended sessions: one that made the user's default, one that was restored from that
	// default, one restored with some origins only, one with most options, and one of the
	// other engine.
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", obj{"engine": "chrome", "retention": obj{"keep_last": 50, "keep_labelled": true},
		"login_check": obj{"url": site.URL + "/account", "status": 200, "cookie": "login"}})
	keeps(begin(t, d, obj{"session_id": "first", "user_id": "ada"}), "first")
	saves("first", toFiles+andDefault)
	record.First = record.Snapshots["first"]
	keeps(begin(t, d, obj{"session_id": "second", "user_id": "ada", "restore_default_environment_from_user_id": "ada"}), "second")
	saves("second", toFiles+andDefault)

	keeps(begin(t, d, obj{"session_id": "partial", "user_id": "ada", "restore_from_session_id": "first",
		"origins": obj{"include": []string{site.URL}}}), "partial")
	saves("partial", toFiles)

	var extension struct{ ID string }
	d.Send(t, daemon.Key, http.MethodPost, "/v1/extensions", bytes.NewReader(goldenExtension(t)), http.Header{"Content-Type": {"application/zip"}}).Into(t, &extension)
	record.Extension = extension.ID
	keeps(begin(t, d, goldenAsked(extension.ID)), "asked")
	saves("asked", toFiles)
	keeps(begin(t, d, obj{"session_id": "light", "user_id": "ada", "engine": "shell"}), "light")
	saves("light", toFiles)

	// A default with a scheduled login check, and one that was imported from a file.
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/checked",
		obj{"login_check": obj{"url": site.URL + "/account", "status": 200, "check_every_seconds": 60}})
	keeps(begin(t, d, obj{"session_id": "checked", "user_id": "checked"}), "checked")
	saves("checked", toFiles+andDefault)
	record.Imported = imports(t, d, "playwright", []byte(`{"cookies": [{"name": "login", "value": "imported", "domain": "127.0.13.1", "path": "/",
		"expires": -1, "httpOnly": false, "secure": false, "sameSite": "Lax"}],
		"origins": [{"origin": "`+site.URL+`", "localStorage": [{"name": "kept", "value": "imported"}]}]}`),
		"user_id", "bob", "save_as_default", "true", "label", "from a file").Snapshot.ID

	// Messages, notes and documents of agents.
	d.Must(t, http.StatusOK, http.MethodPost, at("first", "/message"), obj{"message": "Which one?", "type": "QUESTION"})
	d.Must(t, http.StatusOK, http.MethodPost, "/v1/memory/v2/session", obj{"session_id": "first", "open_tasks": []string{"book"}, "key_decisions": []string{"the second one"}})
	scope := at("first", "/scopes/agent/planner")
	d.Must(t, http.StatusNoContent, http.MethodPut, scope+"/snapshots/"+goldenDocumentID+"?latest=true", goldenDocument)
	d.Must(t, http.StatusNoContent, http.MethodPut, scope+"/manifest", goldenManifest)

	// Keys, one of them revoked.
	record.Key = newKey(t, d, "ada")
	var revoked struct{ ID, Secret string }
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/keys", obj{"name": "revoked", "user_id": "ada"}).Into(t, &revoked)
	record.Revoked = revoked.Secret
	d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/keys/"+revoked.ID, nil)

	// A crashed Chrome, and a session that was rescued after the daemon was killed.
	keeps(begin(t, d, obj{"session_id": "crashed", "user_id": "ada"}), "crashed")
	checkpoint("crashed")
	kill9(t, mains(d)[0])
	crashed(t, d, "crashed")
	record.Snapshots["crashed"] = look(t, d, "crashed").Outcome.Snapshot.ID
	keeps(begin(t, d, obj{"session_id": "rescued", "user_id": "ada"}), "rescued")
	checkpoint("rescued")
	d.Kill(t)
	nothingRuns(t, d, afterKill)
	d.Restart(t)
	record.Snapshots["rescued"] = look(t, d, "rescued").Outcome.Snapshot.ID

	// The daemon is killed again, with a parked Chrome, queued webhooks and running
	// sessions.
	keeps(begin(t, d, obj{"session_id": "parked", "user_id": "keeper"}), "parked")
	saves("parked", toMemory+andDefault)
	site.hooks.answers(func(receivedWebhook) int { return http.StatusServiceUnavailable })
	begin(t, d, obj{"session_id": "told", "user_id": "ada", "webhook_url": site.hooks.URL})
	finish(t, d, "told", throwAway)
	keeps(begin(t, d, obj{"session_id": "left", "user_id": "ada", "timezone": "Asia/Tokyo"}), "left")
	checkpoint("left")
	keeps(begin(t, d, obj{"session_id": "left-light", "user_id": "ada", "engine": "shell"}), "left-light")
	checkpoint("left-light")
	keeps(begin(t, d, obj{"session_id": "left-paused", "user_id": "ada"}), "left-paused")
	checkpoint("left-paused")
	d.Must(t, http.StatusOK, http.MethodPost, at("left-paused", "/pause"), nil)
	var queued []struct{ ID string }
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/webhooks/deliveries?state=pending", nil).Into(t, &queued)
	for _, one := range queued {
		record.Pending = append(record.Pending, one.ID)
	}
	if len(record.Pending) < 2 {
		t.Fatalf("queued webhooks: %+v", queued)
	}
	d.Kill(t)
	nothingRuns(t, d, afterKill)

	raw, err := json.MarshalIndent(record, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Dir, goldenRecordFile), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(goldenFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	packGolden(t, d.Dir, filepath.Join(goldenFolder, time.Now().UTC().Format(time.DateOnly)+".tar.zst"))
}

// A document that an agent keeps, and a manifest.
const (
	goldenDocumentID = "019abc00-0001-7000-8000-000000000001"
	goldenDocument   = `{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{"messages":["hello"]},"appData":{}}`
	goldenManifest   = `{"schemaVersion":"1.0","updatedAt":"2026-11-22T04:34:40.908Z"}`
)
