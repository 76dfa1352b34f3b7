package e2e

import (
	"cmp"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// TestBadInput sends bad input to one daemon, which must continue to work. The daemon uses
// the shell, which starts faster: no input here depends on the engine.
func TestBadInput(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	for _, c := range []struct {
		name string
		test func(*testing.T, *daemon.Daemon)
	}{
		{"refused requests", refusedRequests},
		{"session IDs that are paths", sessionIDIsAPath},
		{"a second delete", secondDelete},
		{"other deletes at once", deletesAtOnce},
		{"the same deletes at once", sameDeletesAtOnce},
		{"a snapshot that is gone", snapshotIsGone},
		{"damaged archives", damagedArchives},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.test(t, d)
			nothingLeft(t, d)
		})
	}
}

// refusedRequests sends creates and deletes that are refused before anything is started.
func refusedRequests(t *testing.T, d *daemon.Daemon) {
	post := func(body any) daemon.Answer { return d.Call(t, http.MethodPost, "/v1/sessions", body) }
	s := begin(t, d, obj{"session_id": "mine"})
	daemon.Eventually(t, grace, "only the session and the spare have run directories", func() bool { return len(runDirs(t, d)) == 1+d.Spares() })
	before := runDirs(t, d)

	for _, c := range []struct {
		name   string
		answer daemon.Answer
		status int
		code   string
		names  string // a text that the message must contain
	}{
		{"malformed JSON", post(`{"agent_name":`), 400, "invalid_request", ""},
		{"two values", post(`{} {}`), 400, "invalid_request", ""},
		{"a name twice", post(`{"goal":"a","goal":"b"}`), 400, "invalid_request", "goal"},
		{"an array", post(`[]`), 400, "invalid_request", ""},
		{"oversized JSON", post(`{"goal":"` + strings.Repeat("x", 2<<20) + `"}`), 413, "too_large", ""},
		{"deep JSON", post(strings.Repeat(`[`, 100_000)), 400, "invalid_request", ""},
		{"unknown field", post(obj{"restore_from": "x"}), 422, "unknown_field", "restore_from"},
		{"wrong type", post(obj{"idle_timeout_seconds": "900"}), 400, "invalid_request", "idle_timeout_seconds"},
		{"wrong type of text", post(obj{"user_id": 7}), 400, "invalid_request", "user_id"},
		{"no such quota", d.Call(t, http.MethodPatch, "/v1/users/default", obj{"quotas": obj{"cookies": 1}}), 422, "unknown_field", "quotas.cookies"},
		{"a webhook that is a file", post(obj{"webhook_url": "file:///etc/passwd"}), 422, "invalid_field", "webhook_url"},
		{"nothing that is recorded", post(obj{"record": []string{"video"}}), 422, "invalid_field", "record"},
		{"empty ID", post(obj{"restore_from_session_id": ""}), 422, "invalid_field", "restore_from_session_id"},
		{"file: start_url", post(obj{"start_url": "file:///etc/passwd"}), 422, "invalid_field", "start_url"},
		{"unknown mode", d.Call(t, http.MethodDelete, at(s.ID, "?save_snapshot_mode=disk"), nil), 422, "invalid_field", "save_snapshot_mode"},
		{"save_as_default with none", d.Call(t, http.MethodDelete, at(s.ID, "?save_as_default=true"), nil), 422, "invalid_field", "save_as_default"},
		{"mode that is no text", d.Call(t, http.MethodDelete, at(s.ID, "?save_as_default=yes"), nil), 400, "invalid_request", "save_as_default"},
		{"unknown parameter", d.Call(t, http.MethodDelete, at(s.ID, "?save=true"), nil), 422, "unknown_field", "save"},
		{"unknown session", d.Call(t, http.MethodGet, at("nobody"), nil), 404, "session_not_found", ""},
		{"unknown session, used", d.Call(t, http.MethodPost, at("nobody", "/navigate"), obj{"url": "about:blank"}), 404, "session_not_found", ""},
		{"a taken session ID", post(obj{"session_id": s.ID, "goal": "another"}), 409, "session_exists", ""},
		{"unknown snapshot", post(obj{"restore_from_environment_id": "gone"}), 404, "snapshot_not_found", ""},
		{"unknown session to restore", post(obj{"restore_from_session_id": "gone"}), 404, "snapshot_not_found", ""},
		{"a session never saved", post(obj{"restore_from_session_id": s.ID}), 409, "no_snapshot", "if_missing"},
		{"no default", post(obj{"restore_default_environment_from_user_id": "nobody"}), 409, "no_snapshot", ""},
		{"kept and never saved", post(obj{"read_only": true, "persist": true}), 422, "invalid_field", "read_only"},
		{"a fresh default of another", post(obj{"restore_default_environment_from_user_id": "nobody", "if_missing": "fresh", "user_id": "else"}), 422, "user_mismatch", "user_id"},
		{"no key", d.CallAs(t, "", http.MethodGet, "/v1/sessions", nil), 401, "unauthorized", ""},
		{"a wrong key", d.CallAs(t, "stasis_wrong_key_00000000000", http.MethodPost, "/v1/sessions", obj{}), 401, "unauthorized", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			wants(t, c.answer, c.status, c.code)
			if !strings.Contains(string(c.answer.Body), c.names) {
				t.Errorf("the message does not name %s: %s", c.names, c.answer.Body)
			}
		})
	}
	if after := runDirs(t, d); !slices.Equal(before, after) {
		t.Errorf("run directories: %q, were %q", after, before)
	}
	if now := look(t, d, s.ID); now.Status != "ready" {
		t.Errorf("the session is %s", now.Status)
	}
	finish(t, d, s.ID, throwAway)
}

// sessionIDIsAPath checks that a session ID like a path names no file and makes none.
func sessionIDIsAPath(t *testing.T, d *daemon.Daemon) {
	outside := filepath.Join(filepath.Dir(d.Dir), filepath.Base(d.Dir)+"-evil")
	for _, id := range []string{"../evil", "..", "a/b", "/etc", "A", "a b", "a\x00", "é", strings.Repeat("a", 129), "../../" + filepath.Base(outside)} {
		wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"session_id": id}), 422, "invalid_field")
		a := d.Call(t, http.MethodGet, at(id), nil)
		if a.Status != http.StatusNotFound && a.Status != http.StatusBadRequest {
			t.Errorf("GET %q = %d %s", id, a.Status, a.Body)
		}
		if status, body := plain(t, d, http.MethodDelete, at(id, "?", toFiles), nil); status >= 500 || strings.Contains(body, `"deleted":true`) {
			t.Errorf("DELETE %q = %d %s", id, status, body)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Errorf("%s was made", outside)
	}
	nothingLeft(t, d)
}

// secondDelete checks that a second delete returns what the first one saved and makes it
// the default if it asks for that, and that deleting an unknown session is an error only with
// a save.
func secondDelete(t *testing.T, d *daemon.Daemon) {
	s := begin(t, d, obj{})
	first := finish(t, d, s.ID, toFiles)
	for _, query := range []string{toFiles, throwAway, toMemory + andDefault} {
		wants(t, d.Call(t, http.MethodGet, "/v1/users/default/default", nil), 404, "default_not_found")
		var second ending
		d.Must(t, http.StatusOK, http.MethodDelete, at(s.ID, "?", query), nil).Into(t, &second)
		if second.Deleted || second.Snapshot == nil || second.Snapshot.ID != first.Snapshot.ID {
			t.Errorf("second delete with %s: %+v, want deleted false and snapshot %s", query, second, first.Snapshot.ID)
		}
	}
	var none ending
	d.Must(t, http.StatusOK, http.MethodDelete, at("nobody", "?", throwAway), nil).Into(t, &none)
	if none.Deleted || none.Snapshot != nil {
		t.Errorf("delete of a session that never was: %+v", none)
	}
	wants(t, d.Call(t, http.MethodDelete, at("nobody", "?", toFiles), nil), 404, "session_not_found")
	wants(t, d.Call(t, http.MethodPost, at(s.ID, "/navigate"), obj{"url": "about:blank"}), 409, "session_not_running")
	var now struct {
		Snapshot string `json:"snapshot_id"`
	}
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/users/default/default", nil).Into(t, &now)
	if now.Snapshot != first.Snapshot.ID {
		t.Errorf("the default is %q, want %s", now.Snapshot, first.Snapshot.ID)
	}
	d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/users/default/default", nil)
}

// deletesAtOnce makes deletes at the same time. Those with the same parameters share one
// save, the others are refused. One that comes when the session has ended without a save is
// refused because there is no snapshot.
func deletesAtOnce(t *testing.T, d *daemon.Daemon) {
	s := begin(t, d, obj{})
	queries := []string{toFiles, toFiles, toFiles, throwAway, toMemory, toFiles + andDefault}
	answers := make([]daemon.Answer, len(queries))
	var group sync.WaitGroup
	for i, q := range queries {
		group.Go(func() { answers[i] = d.Call(t, http.MethodDelete, at(s.ID, "?", q), nil) })
	}
	group.Wait()
	// The first delete decides. Others with its parameters share its answer.
	winner := map[string]int{}
	unsaved := false
	for i, a := range answers {
		switch a.Status {
		case http.StatusOK:
			var e ending
			a.Into(t, &e)
			if e.Deleted {
				winner[queries[i]]++
			}
		case http.StatusConflict:
			if a.Code() == "no_snapshot" {
				unsaved = true
				continue
			}
			wants(t, a, 409, "session_ending")
		default:
			t.Errorf("%s = %d %s", queries[i], a.Status, a.Body)
		}
	}
	if len(winner) != 1 {
		t.Fatalf("sessions were ended in %d ways: %v", len(winner), winner)
	}
	if unsaved && winner[throwAway] == 0 {
		t.Errorf("a delete found no snapshot although the session was saved: %v", winner)
	}
	var list struct{ Snapshots []struct{ ID string } }
	d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/snapshots"), nil).Into(t, &list)
	want := 1
	if winner[throwAway] > 0 {
		want = 0
	}
	if len(list.Snapshots) != want {
		t.Errorf("%d snapshots were made, want %d (%v)", len(list.Snapshots), want, winner)
	}
	// If memory was first, a Chrome is parked. It ends when its snapshot is deleted.
	if winner[toMemory] > 0 {
		for _, made := range list.Snapshots {
			d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/snapshots/"+made.ID, nil)
		}
	}
}

// sameDeletesAtOnce makes the same delete several times at once: one save, one answer
// for all that come before its end, and its snapshot for those that come later.
func sameDeletesAtOnce(t *testing.T, d *daemon.Daemon) {
	s := begin(t, d, obj{})
	answers := make([]daemon.Answer, 4)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = d.Call(t, http.MethodDelete, at(s.ID, "?", toFiles, andDefault), nil) })
	}
	group.Wait()
	saved, snapshot := "", ""
	for _, a := range answers {
		var e ending
		a.Into(t, &e)
		if a.Status != http.StatusOK || e.Snapshot == nil {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		if e.Deleted {
			saved = cmp.Or(saved, string(a.Body))
		}
		snapshot = cmp.Or(snapshot, e.Snapshot.ID)
		if e.Deleted && string(a.Body) != saved || e.Snapshot.ID != snapshot {
			t.Errorf("answers differ: %s, first %s", a.Body, answers[0].Body)
		}
	}
	if saved == "" {
		t.Errorf("no delete ended the session: %s", answers[0].Body)
	}
}

// snapshotIsGone restores from a deleted snapshot.
func snapshotIsGone(t *testing.T, d *daemon.Daemon) {
	s := begin(t, d, obj{})
	e := finish(t, d, s.ID, toFiles)
	d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/snapshots/"+e.Snapshot.ID, nil)
	wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"restore_from_environment_id": e.Snapshot.ID}), 404, "snapshot_not_found")
	wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"restore_from_session_id": s.ID}), 409, "no_snapshot")
	nothingLeft(t, d)
	fresh := begin(t, d, obj{"restore_from_environment_id": e.Snapshot.ID, "if_missing": "fresh"})
	if fresh.Restored != nil {
		t.Errorf("a fresh session was restored: %+v", fresh.Restored)
	}
	finish(t, d, fresh.ID, throwAway)
	first := begin(t, d, obj{"restore_default_environment_from_user_id": "newcomer", "if_missing": "fresh"})
	if first.Restored != nil || first.UserID != "newcomer" {
		t.Errorf("the first session of a user: %+v", first)
	}
	finish(t, d, first.ID, throwAway)
}

// damagedArchives restores from a damaged archive. The error names the snapshot, nothing
// is started from it, and older snapshots can still be restored.
func damagedArchives(t *testing.T, d *daemon.Daemon) {
	const user = "damaged"
	older := finish(t, d, begin(t, d, obj{"user_id": user}).ID, toFiles)
	archives := filepath.Join(d.Dir, "snapshots", "archives")
	had := files(t, archives)
	newer := finish(t, d, begin(t, d, obj{"user_id": user}).ID, toFiles+andDefault)
	whole := map[string][]byte{} // what the newer snapshot has in the store, by path
	for _, name := range files(t, archives) {
		path := filepath.Join(archives, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(had, name) {
			whole[path] = raw
		}
	}
	if len(whole) == 0 {
		t.Fatal("the newer snapshot has no archive")
	}
	for _, c := range []struct {
		name   string
		damage func(raw []byte) []byte
	}{
		{"a byte turned", func(raw []byte) []byte { raw[len(raw)-40] ^= 1; return raw }},
		{"the head turned", func(raw []byte) []byte { raw[60] ^= 1; return raw }},
		{"truncated", func(raw []byte) []byte { return raw[:len(raw)/2] }},
		{"empty", func([]byte) []byte { return nil }},
		{"longer", func(raw []byte) []byte { return append(raw, "more"...) }},
		{"gone", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for path, raw := range whole {
				if err := os.WriteFile(path, raw, 0o600); err != nil {
					t.Fatal(err)
				}
				damageFile(t, path, c.damage)
			}
			a := d.Call(t, http.MethodPost, "/v1/sessions", obj{"restore_default_environment_from_user_id": user})
			wants(t, a, 500, "archive_damaged")
			if !strings.Contains(string(a.Body), newer.Snapshot.ID) {
				t.Errorf("the error does not name snapshot %s: %s", newer.Snapshot.ID, a.Body)
			}
			if strings.Contains(string(a.Body), d.Dir) {
				t.Errorf("the error names a path: %s", a.Body)
			}
			nothingLeft(t, d)
		})
	}
	// The daemon does not remember the damage: the whole archive can be restored.
	for path, raw := range whole {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, d, begin(t, d, obj{"restore_default_environment_from_user_id": user}).ID, throwAway)
	s := begin(t, d, obj{"restore_from_environment_id": older.Snapshot.ID})
	if s.Restored == nil || s.Restored.SnapshotID != older.Snapshot.ID {
		t.Errorf("the older snapshot was not restored: %+v", s.Restored)
	}
	finish(t, d, s.ID, throwAway)
}

// damageFile changes a file in place, or removes it if damage is nil.
func damageFile(t testing.TB, path string, damage func([]byte) []byte) {
	t.Helper()
	if damage == nil {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, damage(raw), 0o600); err != nil {
		t.Fatal(err)
	}
}
