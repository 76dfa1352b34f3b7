package e2e

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the catalogue, to forge it

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// audit runs a verb of stasis audit against the daemon.
func audit(t *testing.T, d *daemon.Daemon, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), daemon.Binary(t), append([]string{"audit"}, args...)...)
	cmd.Env = append(os.Environ(), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// audited returns the entries that a query selects, oldest first.
func audited(t *testing.T, d *daemon.Daemon, query string) (all []client.AuditEntry) {
	t.Helper()
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/audit?oldest_first=true&limit=1000&"+query, nil).Into(t, &all)
	return all
}

// TestAudit lives through a story of two users, and finds it in the audit log: each act with
// who did it to what, and no secret. The log survives kill -9.
func TestAudit(t *testing.T) {
	t.Parallel()
	const cookie = "keksgeheimnis4711"
	dir, file := daemon.DataDir(t), filepath.Join(daemon.DataDir(t), "audit.jsonl")
	d := daemon.Start(t, daemon.Options{Dir: dir, NoSpares: true, Args: []string{"--engine", "shell", "--audit-file", file}})
	site := apps.StartProbe(t)
	var made struct{ ID, Secret string }
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/keys", obj{"name": "alice", "user_id": "alice", "rights": []string{"use", "secrets"}}).Into(t, &made)
	alice := made.Secret
	secrets := []string{alice, daemon.Key, cookie}

	s := beginAs(t, d, alice, obj{})
	_, ticket, _ := strings.Cut(s.CDP, "ticket=")
	secrets = append(secrets, ticket)
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/?token="+cookie)
	w.eval(page, `document.cookie = "c=`+cookie+`; max-age=100000"`)
	w.close()
	saved := finish(t, d, s.ID, toFiles+andDefault)
	back := beginAs(t, d, alice, obj{"restore_default_environment_from_user_id": "alice"})
	secrets = append(secrets, strings.SplitAfter(back.CDP, "ticket=")[1])
	state := d.CallAs(t, alice, http.MethodGet, "/v1/snapshots/"+saved.Snapshot.ID+"/state", nil)
	if !bytes.Contains(state.Body, []byte(cookie)) {
		t.Fatal("the saved state lacks the cookie")
	}
	d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"engine": "shell"})
	wants(t, d.CallAs(t, alice, http.MethodGet, "/v1/keys", nil), http.StatusForbidden, "forbidden")
	wants(t, d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{"user_id": "bob"}), http.StatusForbidden, "forbidden")
	for range 5 {
		wants(t, d.CallAs(t, "stasis_wrong_"+cookie, http.MethodDelete, at(back.ID, ""), nil), http.StatusUnauthorized, "unauthorized")
	}
	d.Must(t, http.StatusOK, http.MethodGet, at(back.ID, ""), nil) // by an admin, of alice's session
	d.Must(t, http.StatusOK, http.MethodGet, at(back.ID, ""), nil)
	var connect struct{ Ticket string }
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/tickets", nil).Into(t, &connect)
	secrets = append(secrets, connect.Ticket)

	type row struct{ call, by, key, keyUser, user, session, snapshot, object, detail, outcome, code string }
	const first, admins = "first", "default"
	want := []row{
		{call: "daemon_started", by: "daemon", outcome: "ok"},
		{"createKey", "first_key", first, admins, "alice", "", "", made.ID, "[use secrets]", "ok", ""},
		{"createSession", "key", made.ID, "alice", "alice", s.ID, "", "", "", "ok", ""},
		{"cdp", "ticket", made.ID, "alice", "alice", s.ID, "", "", "", "ok", ""},
		{"deleteSession", "first_key", first, admins, "alice", s.ID, saved.Snapshot.ID, "", "filesystem default", "ok", ""},
		{"createSession", "key", made.ID, "alice", "alice", back.ID, saved.Snapshot.ID, "", "", "ok", ""},
		{"snapshotState", "key", made.ID, "alice", "alice", "", saved.Snapshot.ID, "", "stasis", "ok", ""},
		{"patchUser", "key", made.ID, "alice", "alice", "", "", "", "engine", "ok", ""},
		{"listKeys", "key", made.ID, "alice", "", "", "", "", "", "refused", "forbidden"},
		{"createSession", "key", made.ID, "alice", "bob", "", "", "", "", "refused", "forbidden"},
		{"deleteSession", "unknown", "", "", "", "", "", "", "", "refused", "unauthorized"},
		{"getSession", "first_key", first, admins, "alice", back.ID, "", "", "", "ok", ""},
		{"createTicket", "first_key", first, admins, "", "", "", "", "", "ok", ""},
	}
	all := audited(t, d, "")
	for i, e := range all {
		got := row{e.Call, e.By, e.KeyID, e.KeyUser, e.UserID, e.SessionID, e.SnapshotID, e.Object, e.Detail, e.Outcome, e.Code}
		if i == 0 {
			got.detail = "" // the version
		}
		if i >= len(want) || got != want[i] {
			t.Errorf("entry %d is %+v", i+1, got)
		}
		if e.Count != 1 || e.Number != int64(i+1) || e.By != "daemon" && e.Address != "127.0.0.1" {
			t.Errorf("entry %d: %+v", i+1, e)
		}
	}
	if len(all) != len(want) {
		t.Fatalf("%d entries, want %d", len(all), len(want))
	}

	// Filters, for admins only.
	wants(t, d.CallAs(t, alice, http.MethodGet, "/v1/audit", nil), http.StatusForbidden, "forbidden")
	for query, n := range map[string]int{"user_id=alice": 8, "key_id=" + made.ID: 8, "session_id=" + back.ID: 2, "object=" + saved.Snapshot.ID: 3, "call=cdp": 1,
		"outcome=refused&call=createSession": 1, "others=true": 4, "until=2020-01-01T00:00:00Z": 0, "since=2020-01-01T00:00:00Z&call=patchUser": 1} {
		if got := audited(t, d, query); len(got) != n {
			t.Errorf("%s: %d entries, want %d: %+v", query, len(got), n, got)
		}
	}
	if code, said := audit(t, d, "list", "--session", s.ID, "--outcome", "ok", "--since", "24h", "--limit", "1"); code != 0 || !strings.Contains(said, "deleteSession") || strings.Contains(said, "createSession") {
		t.Errorf("exit code %d:\n%s", code, said)
	}

	// A killed daemon leaves a chain that its next start continues, and so is the file's.
	verified := func(args ...string) (head string, last int) {
		t.Helper()
		code, said := audit(t, d, append([]string{"verify", "--json"}, args...)...)
		var result struct {
			OK   bool
			Last int
			Head string
		}
		if err := json.Unmarshal([]byte(said), &result); code != 0 || err != nil || !result.OK {
			t.Errorf("%s: exit code %d: %s", args, code, said)
		}
		return result.Head, result.Last
	}
	head, last := verified()
	d.Kill(t)
	d.Restart(t)
	if _, now := verified("--head", head); now <= last {
		t.Errorf("the log ends with %d after the kill, before with %d", now, last)
	}
	rescued := audited(t, d, "call=session_rescued")
	if len(rescued) != 1 || rescued[0].SessionID != back.ID || rescued[0].UserID != "alice" || rescued[0].SnapshotID == "" {
		t.Errorf("the rescue: %+v", rescued)
	}
	// Counts that a killed daemon had not written yet are lost; those of one that stops are not.
	for range 5 {
		d.CallAs(t, "stasis_wrong_"+cookie, http.MethodGet, "/v1/me", nil)
	}
	var ready struct{ Audit struct{ Recording bool } }
	if d.CallAs(t, "", http.MethodGet, "/readyz", nil).Into(t, &ready); !ready.Audit.Recording {
		t.Error("/readyz says that the audit log is not written")
	}
	d.Stop(t)
	if code, said := audit(t, d, "verify", "--head", head, "--file", file); code != 0 || !strings.Contains(said, "ok: ") {
		t.Errorf("the file: exit code %d: %s", code, said)
	}
	lines, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(lines, []byte(`"call":"me","user_id":"","session_id":"","snapshot_id":"","object":"","detail":"","outcome":"refused","code":"unauthorized","count":4`)) {
		t.Errorf("the file lacks the count of wrong keys: %v\n%s", err, lines)
	}

	// The program in the documentation agrees with every hash.
	documented, err := os.ReadFile("../docs/decisions/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(documented), "```python\n")
	program, _, _ = strings.Cut(program, "```")
	python := func(lines []byte) error {
		cmd := exec.CommandContext(t.Context(), "python3", "-c", program)
		cmd.Stdin = bytes.NewReader(lines)
		return cmd.Run()
	}
	if err := python(lines); err != nil || python(bytes.Replace(lines, []byte("createKey"), []byte("deleteKey"), 1)) == nil {
		t.Errorf("the documented program: %v", err)
	}

	// No secret is in the catalogue or in the file.
	catalogue := filepath.Join(dir, "stasis.db")
	for _, path := range []string{file, catalogue, catalogue + "-wal"} {
		raw, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, secret := range secrets {
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s contains %q", path, secret)
			}
		}
	}
	forgeAudit(t, d, dir, file, head)
}

// forgeAudit changes the log, and each change is found.
func forgeAudit(t *testing.T, d *daemon.Daemon, dir, file, head string) {
	t.Helper()
	forge := func(statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", filepath.Join(dir, "stasis.db"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.ExecContext(t.Context(), statement)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(name, says string, args ...string) {
		t.Helper()
		if code, said := audit(t, d, append([]string{"verify"}, args...)...); code != 8 || !strings.Contains(said, says) {
			t.Errorf("%s: exit code %d: %s", name, code, said)
		}
	}
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct{ text, says string }{
		"changed":    {strings.Replace(string(lines), `"call":"createKey"`, `"call":"listKeys"`, 1), "entry 2 does not match its hash"},
		"removed":    {strings.Join(append(strings.SplitAfter(string(lines), "\n")[:4], strings.SplitAfter(string(lines), "\n")[5:]...), ""), "entry 5 is missing"},
		"truncated":  {strings.Join(strings.SplitAfter(string(lines), "\n")[:3], ""), "no entry has the hash of --head"},
		"with more":  {strings.Replace(string(lines), `{"number":3,`, `{"number":3,"note":"x",`, 1), "entry 3 is not an entry"},
		"not a line": {strings.Replace(string(lines), `{"number":3,`, `number`, 1), "entry 3 is not an entry"},
	} {
		forged := filepath.Join(t.TempDir(), "forged")
		if err := os.WriteFile(forged, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		expect("a file "+name, x.says, "--file", forged, "--head", head)
	}
	d.Restart(t)
	end := len(audited(t, d, ""))
	forge(fmt.Sprint("UPDATE audit SET outcome = 'ok' WHERE number = ", 9))
	expect("a changed entry", "entry 9 does not match its hash")
	forge("UPDATE audit SET outcome = 'refused' WHERE number = 9")
	if code, said := audit(t, d, "verify"); code != 0 {
		t.Errorf("put back: exit code %d: %s", code, said)
	}
	forge("DELETE FROM audit WHERE number = 4")
	expect("a removed entry", "entry 4 is missing")
	forge("DELETE FROM audit WHERE number < 5")
	expect("a removed beginning", "entry 4 is missing, and no entry says")
	if code, said := audit(t, d, "verify", "--head", strings.Repeat("0", 10)); code != 2 || !strings.Contains(said, "--head") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said := audit(t, d, "list", "--limit", strconv.Itoa(end), "--since", "yesterday"); code != 2 || !strings.Contains(said, "--since") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// A file or a syslog that is not there refuses the start.
func TestAuditRefusesStart(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--audit-file", "/none/audit"}, {"--audit-file", t.TempDir()}, {"--audit-keep", "-1d"}} {
		if code, said := serve(t, nil, append([]string{"--data-dir", daemon.DataDir(t), "--no-preflight"}, args...)...); code != 2 || !strings.Contains(said, "audit") {
			t.Errorf("%s: exit code %d:\n%s", args, code, said)
		}
	}
	noSyslog := []string{"unshare", "--mount", "sh", "-c", `! [ -e /dev/log ] || mount --bind /dev/null /dev/log; exec "$@"`, "sh"}
	if code, said := serve(t, noSyslog, "--data-dir", daemon.DataDir(t), "--no-preflight", "--audit-syslog"); code != 2 || !strings.Contains(said, "--audit-syslog") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
