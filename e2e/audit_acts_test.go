package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/e2e/daemon"
)

// What the daemon does by itself and what it refuses is in the audit log, however often a
// hostile page and a stranger try.
func TestAuditActs(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--egress", "required", "--allow-private", "none"}})
	entries := func(call string) []client.AuditEntry { return audited(t, d, "call="+call) }
	eventually := func(what, call string, is func([]client.AuditEntry) bool) {
		t.Helper()
		daemon.Eventually(t, backgroundDeadline, what, func() bool { return is(entries(call)) })
	}
	one := func(all []client.AuditEntry) bool { return len(all) == 1 }

	hostile := begin(t, d, obj{"user_id": "mallory"})
	w := dial(t, hostile.CDP)
	page, _ := w.page()
	for range 3 {
		w.refused(page, "Page.navigate", obj{"url": "file:///etc/passwd"})
	}
	eventually("one entry of the refused command", "command_refused", one)
	if e := entries("command_refused")[0]; e.Object != "Page.navigate" || e.SessionID != hostile.ID || e.UserID != "mallory" || e.Outcome != "refused" || e.By != "daemon" {
		t.Errorf("%+v", e)
	}
	// 40 addresses, each several times.
	w.eval(page, `Promise.allSettled(Array.from({length: 120}, (_, i) => fetch("http://127.77.0." + (1 + i % 40) + "/?secret=geheim4811", {mode: "no-cors"}))).then(() => "done")`)
	eventually("the first of the refused connections", "egress_refused", func(all []client.AuditEntry) bool { return len(all) >= 16 })
	w.close()
	finish(t, d, hostile.ID, throwAway)

	// A stranger without a key.
	for i := range 40 {
		wants(t, d.CallAs(t, fmt.Sprint("stasis_guess_", i), http.MethodGet, "/v1/users/victim", nil), http.StatusUnauthorized, "unauthorized")
	}
	if all := audited(t, d, "outcome=refused&call=getUser"); len(all) != 1 || all[0].By != "unknown" || all[0].UserID != "" {
		t.Errorf("a guess: %+v", all)
	}

	// The end of a session that nobody uses any more, and its checkpoints.
	idle := begin(t, d, obj{"user_id": "ada", "idle_timeout_seconds": 20, "auto_save": obj{"interval_seconds": 5}})
	w = dial(t, idle.CDP) // until the first checkpoint
	eventually("a checkpoint", "checkpoint_saved", func(all []client.AuditEntry) bool { return len(all) > 0 })
	w.close()
	eventually("the idle session has ended", "session_ended", one)
	ended := entries("session_ended")[0]
	if ended.SessionID != idle.ID || ended.UserID != "ada" || ended.Detail != "idle_timeout" || ended.SnapshotID == "" || ended.Outcome != "ok" {
		t.Errorf("%+v", ended)
	}
	if all := entries("checkpoint_saved"); len(all) == 0 || all[0].SessionID != idle.ID || all[0].SnapshotID == "" {
		t.Errorf("checkpoints: %+v", all)
	}
	d.Stop(t)
	d.Restart(t)
	connections := entries("egress_refused")
	count, addresses := int64(0), map[string]bool{}
	for _, e := range connections {
		count += e.Count
		addresses[e.Object] = true
		if e.SessionID != hostile.ID || e.UserID != "mallory" || strings.Contains(e.Object+e.Detail, "geheim") {
			t.Errorf("%+v", e)
		}
	}
	// 16 addresses and the rest, each with one entry, and one for its count.
	if len(connections) > 34 || len(addresses) != 17 || !addresses[""] || count < 30 {
		t.Errorf("%d entries of %d refused connections to %d addresses", len(connections), count, len(addresses))
	}
}
