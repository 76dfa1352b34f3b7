package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// Two live sessions of one login can log each other out. on_live says what a create does
// if another session has the environment.
func onLive(t *testing.T, d *daemon.Daemon) {
	site := apps.StartProbe(t)
	s := create(t, d, body{"user_id": "many"})
	save(t, d, s.ID, "filesystem", "save_as_default=true")
	with := func(more body) body {
		b := body{"restore_default_environment_from_user_id": "many"}
		for k, v := range more {
			b[k] = v
		}
		return b
	}
	holder := create(t, d, with(body{"persist": true}))
	for _, b := range []body{with(body{"on_live": "fail"}), with(body{"persist": true}), with(body{"on_live": "wait"})} {
		a := d.Call(t, http.MethodPost, "/v1/sessions", b)
		if a.Status != http.StatusConflict || a.Code() != "environment_in_use" || !strings.Contains(string(a.Body), holder.ID) {
			t.Errorf("%v: %d %s", b, a.Status, a.Body)
		}
	}
	var shared created
	d.Must(t, http.StatusOK, http.MethodPost, "/v1/sessions", with(body{"on_live": "share"})).Into(t, &shared)
	if shared.ID != holder.ID || shared.CDP != holder.CDP {
		t.Errorf("shared: %+v", shared)
	}
	fork := create(t, d, with(nil))
	if fork.ID == holder.ID {
		t.Error("the fork has the session's own ID")
	}
	end(t, d, fork.ID, "")

	// A create that waits gets the environment as the other session saved it.
	waiting := createLater(t, d, with(body{"on_live": "wait", "wait_seconds": 600, "persist": true, "session_id": "patient"}))
	drive(t, chromeDP, holder.CDP, visit(site.URL+"/set?v=one"), await(`document.title === "set"`))
	end(t, d, holder.ID, "")
	a := <-waiting
	if a.Status != http.StatusCreated {
		t.Fatalf("after the wait: %d %s", a.Status, a.Body)
	}
	var patient created
	a.Into(t, &patient)
	drive(t, chromeDP, patient.CDP, visit(site.URL+"/check"), await(checked), await(`window.__state.idb_value === "one"`))
	_, before := defaultOf(t, d, "many")
	end(t, d, patient.ID, "")
	if _, after := defaultOf(t, d, "many"); after != before+1 {
		t.Errorf("the default went from version %d to %d", before, after)
	}
}

// If creates come at the same time, only one gets the environment.
func onLiveAtOnce(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{"user_id": "at-once"})
	save(t, d, s.ID, "filesystem", "save_as_default=true")
	const n = 4
	answers := make(chan daemon.Answer, n)
	for range n {
		go func() {
			answers <- d.Call(t, http.MethodPost, "/v1/sessions", body{"restore_default_environment_from_user_id": "at-once", "on_live": "fail"})
		}()
	}
	made := 0
	for range n {
		switch a := <-answers; {
		case a.Status == http.StatusCreated:
			made++
		case a.Code() != "environment_in_use":
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if made != 1 {
		t.Errorf("%d sessions have the environment, want 1", made)
	}
}

// A create that is sent twice makes one session.
func TestCreateIsSentAgain(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	send := func(key, b string) (daemon.Answer, created) {
		t.Helper()
		var s created
		a := d.Send(t, daemon.Key, http.MethodPost, "/v1/sessions", strings.NewReader(b), http.Header{"Idempotency-Key": {key}})
		if a.Status < 300 {
			a.Into(t, &s)
		}
		return a, s
	}
	_, one := send("k1", `{"goal":"a"}`)
	again, two := send("k1", `{ "goal": "a" }`)
	if two.ID != one.ID || two.CDP != one.CDP || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeat: %d %s, of %s", again.Status, again.Body, one.ID)
	}
	if a, _ := send("k1", `{"goal":"b"}`); a.Status != http.StatusUnprocessableEntity || a.Code() != "idempotency_reused" {
		t.Errorf("another body: %d %s", a.Status, a.Body)
	}
	if _, other := send("k2", `{"goal":"a"}`); other.ID == one.ID {
		t.Error("another Idempotency-Key returned the same session")
	}
	restart(t, d)
	if a, late := send("k1", `{"goal":"a"}`); a.Status != http.StatusOK || late.ID != one.ID || late.Status != "terminated" {
		t.Errorf("after a restart: %d %+v, of %s", a.Status, late, one.ID)
	}

	named := create(t, d, body{"session_id": "mine", "goal": "a"})
	if again := create(t, d, body{"goal": "a", "session_id": "mine"}); again.ID != named.ID || again.CDP != named.CDP {
		t.Errorf("a repeated session_id: %+v", again)
	}
	d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/mine", nil)
	var ended created
	d.Must(t, http.StatusOK, http.MethodPost, "/v1/sessions", body{"session_id": "mine", "goal": "a"}).Into(t, &ended)
	if ended.ID != "mine" || ended.Status != "completed" || ended.CDP != "" {
		t.Errorf("a repeat after the session's end: %+v", ended)
	}
	if a := d.Call(t, http.MethodPost, "/v1/sessions", body{"session_id": "mine", "goal": "b"}); a.Status != http.StatusConflict || a.Code() != "session_exists" {
		t.Errorf("a session_id in use: %d %s", a.Status, a.Body)
	}
}
