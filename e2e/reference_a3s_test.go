package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// What agents' session stores promise, with a browser: a session is saved after each turn
// of its conversation, is taken back to a checkpoint with the conversation of that time,
// resumes with new policies, and its runs can be replayed.
func agentSessions(t *testing.T, d *daemon.Daemon) {
	const id = "agent-session"
	page := func(n int) string { return fmt.Sprintf("data:text/html,<title>page %d</title>", n) }
	s := create(t, d, body{"session_id": id, "user_id": id, "start_url": page(1), "labels": body{"team": "qa"},
		"auto_save": body{"interval_seconds": 86400, "on": []string{"message"}, "keep": 9}})
	path := "/v1/sessions/" + id
	say := func(m obj) { t.Helper(); d.Must(t, http.StatusOK, http.MethodPost, path+"/message", m) }
	savedAfter := func(than string) (now string) {
		t.Helper()
		daemon.Eventually(t, grace, "a checkpoint after the turn", func() bool {
			var a struct {
				Auto struct {
					ID string `json:"last_snapshot_id"`
				} `json:"auto_save"`
			}
			d.Must(t, http.StatusOK, http.MethodGet, path, nil).Into(t, &a)
			now = a.Auto.ID
			return now != "" && now != than
		})
		return now
	}
	shows := func(url string) {
		t.Helper()
		var tabs []string
		defer func() {
			if t.Failed() {
				t.Logf("the tabs were last at %q", tabs)
			}
		}()
		daemon.Eventually(t, grace, "the tab at "+url, func() bool {
			tabs = tabsOf(t, d, id)
			return slices.Equal(tabs, []string{url})
		})
	}
	shows(page(1))
	say(obj{"message": "first task"})
	first := savedAfter("")
	w := dial(t, s.CDP)
	tab, _ := w.page()
	w.open(tab, page(2))
	w.close()
	say(obj{"type": "TOOL", "name": "open", "arguments": obj{"url": page(2)}, "result": obj{"title": "page 2"}})
	say(obj{"type": "DONE", "message": "done with the first"})
	end(t, d, id, "save_snapshot_mode=filesystem")

	// Back to the first turn, under the same ID.
	var resumed struct {
		Status    string
		SessionID string `json:"session_id"`
		CDP       string `json:"cdp_url"`
	}
	d.Must(t, http.StatusOK, http.MethodPost, path+"/resume", obj{"snapshot_id": first}).Into(t, &resumed)
	if resumed.Status != "resumed" || resumed.SessionID != id {
		t.Errorf("%+v", resumed)
	}
	if a := d.Call(t, http.MethodPost, path+"/resume", obj{"snapshot_id": first}); a.Code() != "environment_in_use" {
		t.Errorf("going back while it is live: %d %s", a.Status, a.Body)
	}
	shows(page(1))
	type listed struct {
		Messages []struct {
			Type, Role, Name  string
			Content           any
			Arguments, Result map[string]any
		}
	}
	talk := func(want ...string) {
		t.Helper()
		var l listed
		d.Must(t, http.StatusOK, http.MethodGet, path+"/messages", nil).Into(t, &l)
		var got []string
		for _, m := range l.Messages {
			got = append(got, fmt.Sprint(m.Role, " ", m.Type, " ", m.Content))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the conversation (-want +got):\n%s", diff)
		}
	}
	talk("user USER first task")

	// A resume may name new policies, limits and labels, and nothing else.
	end(t, d, id, "save_snapshot_mode=none")
	again := obj{"session_id": id, "resume": true, "labels": obj{"team": "dev"}, "max_lifetime_seconds": 600,
		"permission_policy": obj{"default_decision": "deny", "rules": []obj{}}}
	other := browser.EngineChrome // than the session's, which is the daemon's
	if s.Engine == other {
		other = browser.EngineShell
	}
	wrong := obj{"session_id": id, "resume": true, "engine": other}
	if a := d.Call(t, http.MethodPost, "/v1/sessions", wrong); a.Code() != "invalid_field" {
		t.Errorf("another engine: %d %s", a.Status, a.Body)
	}
	var changed struct {
		Labels map[string]string
		CDP    string `json:"cdp_url"`
	}
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions", again).Into(t, &changed)
	if changed.Labels["team"] != "dev" {
		t.Errorf("%+v", changed)
	}
	talk("user USER first task", "tool TOOL ", "assistant DONE done with the first") // of the newest snapshot

	// The first run can be replayed from its events.
	var runs struct{ Runs []struct{ ID, Status string } }
	d.Must(t, http.StatusOK, http.MethodGet, path+"/runs", nil).Into(t, &runs)
	if len(runs.Runs) != 3 || runs.Runs[0].ID == "" || runs.Runs[0].Status != "completed" || runs.Runs[2].Status != "running" {
		t.Fatalf("%+v", runs)
	}
	type event struct {
		Data struct {
			Type, Name        string
			Arguments, Result map[string]any
		}
	}
	var replay struct{ Events []event }
	d.Must(t, http.StatusOK, http.MethodGet, path+"/runs/"+runs.Runs[0].ID+"/events?sanitize=false", nil).Into(t, &replay)
	tool := slices.IndexFunc(replay.Events, func(e event) bool { return e.Data.Type == "TOOL" })
	if tool < 0 {
		t.Fatalf("no call of a tool in %+v", replay)
	}
	if call := replay.Events[tool].Data; call.Name != "open" || call.Arguments["url"] != page(2) || call.Result["title"] != "page 2" {
		t.Errorf("the call is %+v", call)
	}
	end(t, d, id, "save_snapshot_mode=none")
}
