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
	const want = "map[commands_run:[] event:session_end files_modified:[auth.go auth_test.go] key_decisions:[cookies, no tokens] open_tasks:[] project_path:/home/ada/shop]"
	if got := fmt.Sprint(note.Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if a := d.Call(t, http.MethodGet, "/v1/memory/v2/session/other", nil); a.Status != http.StatusNotFound || a.Code() != "note_not_found" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
