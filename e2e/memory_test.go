package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// The examples of the session-memory API in docs/sessions.md work, in curl and in Python
// with only its standard library. No Chrome is started.
func TestDocumentedNotes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/sessions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(string(page), "\n## Notes\n")
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, x := range []struct{ language, program, flag, says string }{
		{"sh", "sh", "-ec", `"open_tasks":["write tests"]`},
		{"python", "python3", "-c", "['auth.go', 'auth_test.go'] []\n"},
	} {
		_, code, found := strings.Cut(notes, "```"+x.language+"\n")
		code, _, ended := strings.Cut(code, "```")
		if !found || !ended {
			t.Fatalf("docs/sessions.md has no %s under Notes", x.language)
		}
		cmd := exec.CommandContext(t.Context(), x.program, x.flag, code) //nolint:gosec // the project's own page
		cmd.Env = append(os.Environ(), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), x.says) {
			t.Errorf("%s: %v, without %q:\n%s", x.language, err, x.says, out)
		}
	}
	var note struct {
		Data map[string]any `json:"session_data"`
	}
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/memory/v2/session/refactor-auth", nil).Into(t, &note)
	const want = "map[commands_run:[] event:session_end extra:map[] files_modified:[auth.go auth_test.go] key_decisions:[cookies, no tokens] open_tasks:[] project_path:/home/ada/shop]"
	if got := fmt.Sprint(note.Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if a := d.Call(t, http.MethodGet, "/v1/memory/v2/session/other", nil); a.Status != http.StatusNotFound || a.Code() != "note_not_found" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	sessionMemory(t, d)
}

// sessionMemory makes the calls of the session-memory API as its documentation writes them,
// below each base address that clients of it use.
func sessionMemory(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	const calls = `
curl -fsS -X POST $BASE/session \
  -H "x-api-key: $API_KEY" \
  -H "Content-Type: application/json" \
  -d '{
    "session_id": "session-abc123",
    "project_path": "/Users/dev/myapp",
    "files_modified": ["app/main.py", "app/api/router.py"],
    "key_decisions": ["Switched to async endpoints for better throughput", "Added Redis caching layer"],
    "open_tasks": ["Write tests for /api/v1/models/available"],
    "event": "pre_compact",
    "agent_mood": {"calm": true}
  }' >stored
curl -fsS "$BASE/session/latest" -H "x-api-key: $API_KEY" >latest
curl -fsS "$BASE/session/session-abc123" -H "Authorization: Bearer $API_KEY" >one
cmp stored latest && cmp stored one && cat one`
	for _, base := range []string{"/api/v1/public/memory/v2", "/v1/memory/v2", "/memory/v2"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", calls)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "BASE="+d.URL+base, "API_KEY="+daemon.Key)
		out, err := cmd.CombinedOutput()
		const tasks, extra = `"open_tasks":["Write tests for /api/v1/models/available"]`, `"extra":{"agent_mood":{"calm":true}}`
		if err != nil || !strings.Contains(string(out), tasks) || !strings.Contains(string(out), extra) {
			t.Errorf("%s: %v\n%s", base, err, out)
		}
	}
}
