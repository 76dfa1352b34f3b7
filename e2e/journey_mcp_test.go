package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stasisd/stasis/e2e/daemon"
)

// An agent that speaks MCP does the whole loop with stasis mcp: it starts a fresh session, gets a
// live link for a person, saves the login as the default, is logged in next time, and drives
// that session with Playwright's MCP server.
func TestMCP(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "5b1e07c2a94d8f36e1b0a7d25c6f4e98", Path: "/", HttpOnly: true, MaxAge: 3600})
		}
		title := "logged out"
		if c, err := r.Cookie("session"); err == nil && c.Value == "5b1e07c2a94d8f36e1b0a7d25c6f4e98" {
			title = "logged in"
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>" + title + "</title>" + title))
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	cmd := exec.CommandContext(t.Context(), daemon.Binary(t), "mcp", "--url", d.URL, "--user", "ada")
	cmd.Env = append(os.Environ(), "STASIS_API_KEY="+daemon.Key)
	cmd.Stderr = os.Stderr
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// call calls a tool and decodes what it returned into out. It returns the error that the agent sees.
	call := func(tool string, args map[string]any, out any) string {
		t.Helper()
		result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		text, _ := result.Content[0].(*mcp.TextContent)
		if result.IsError {
			return text.Text
		}
		if out == nil {
			return ""
		}
		if err := json.Unmarshal([]byte(text.Text), out); err != nil {
			t.Fatalf("%s returned %s: %v", tool, text.Text, err)
		}
		return ""
	}
	must := func(tool string, args map[string]any, out any) {
		t.Helper()
		if refused := call(tool, args, out); refused != "" {
			t.Fatalf("%s: %s", tool, refused)
		}
	}

	tools, err := agent.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 8 {
		t.Errorf("%d tools, %v", len(tools.Tools), err)
	}
	if refused := call("start_session", nil, nil); !strings.Contains(refused, "no_snapshot") || !strings.Contains(refused, "start_session with fresh") {
		t.Errorf("without a saved environment: %s", refused)
	}
	type sessionAnswer struct {
		ID       string `json:"session_id"`
		CDP      string `json:"cdp_url"`
		Restored string `json:"restored_snapshot"`
	}
	var first, second sessionAnswer
	must("start_session", map[string]any{"fresh": true, "url": site.URL + "/"}, &first)
	var link struct{ URL string }
	must("live_link", map[string]any{"session_id": first.ID, "control": true}, &link)
	if answer, err := http.Get(link.URL); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the live link: %v, %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
	drive(t, puppeteer, first.CDP, visit(site.URL+"/login"))
	var saved struct {
		Snapshot string
		Default  bool `json:"is_default"`
		Sites    []string
		Message  string
	}
	must("save_session", map[string]any{"session_id": first.ID, "as_default": true, "end": true}, &saved)
	if !saved.Default || strings.Join(saved.Sites, " ") != "127.0.0.1" {
		t.Errorf("saved %+v", saved)
	}
	if refused := call("live_link", map[string]any{"session_id": "no-such"}, nil); !strings.Contains(refused, "list_sessions") {
		t.Errorf("an unknown session: %s", refused)
	}
	var checked struct {
		LoggedIn bool `json:"logged_in"`
	}
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", body{"login_check": obj{"url": site.URL + "/", "text": "logged in", "timeout_seconds": 60}})
	must("check_login", nil, &checked)
	var snapshots struct{ Snapshots []struct{ ID string } }
	must("list_snapshots", nil, &snapshots)
	if !checked.LoggedIn || len(snapshots.Snapshots) == 0 || snapshots.Snapshots[0].ID != saved.Snapshot {
		t.Errorf("checked %+v, snapshots %+v", checked, snapshots)
	}

	must("start_session", map[string]any{"url": site.URL + "/"}, &second)
	if second.Restored != saved.Snapshot {
		t.Errorf("restored %+v", second)
	}
	var port struct{ Address string }
	must("open_devtools_port", map[string]any{"session_id": second.ID}, &port)
	out, err := exec.CommandContext(t.Context(), "node", "clients/mcp.mjs", port.Address).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "logged in") {
		t.Errorf("Playwright's MCP server: %v\n%s", err, out)
	}
	var running struct{ Sessions []sessionAnswer }
	must("list_sessions", nil, &running)
	if len(running.Sessions) != 1 || running.Sessions[0].ID != second.ID {
		t.Errorf("running %+v", running)
	}
	must("end_session", map[string]any{"session_id": second.ID}, nil)
	if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", strings.TrimPrefix(port.Address, "http://")); err != nil {
		t.Errorf("the port of a session that has ended: %v", err)
	} else {
		_ = l.Close()
	}
	if refused := call("end_session", map[string]any{"session_id": "no-such"}, nil); !strings.Contains(refused, "session_not_found") {
		t.Errorf("the end of an unknown session: %q", refused)
	}

	// Two sessions from one default: the second to end keeps its snapshot, and moves the default if asked to overwrite.
	var late sessionAnswer
	must("start_session", nil, &second)
	must("start_session", nil, &late)
	must("save_session", map[string]any{"session_id": second.ID, "as_default": true, "end": true}, nil)
	end := map[string]any{"session_id": late.ID, "as_default": true, "end": true}
	must("save_session", end, &saved)
	if saved.Default || !strings.Contains(saved.Message, saved.Snapshot+"; the session has ended") || !strings.Contains(saved.Message, "end: true and overwrite: true") {
		t.Errorf("a default that has moved: %+v", saved)
	}
	end["overwrite"] = true
	if must("save_session", end, &saved); !saved.Default || saved.Message == "" {
		t.Errorf("overwritten: %+v", saved)
	}
	if err := agent.Close(); err != nil || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the end: %v, exit code %d", err, cmd.ProcessState.ExitCode())
	}
}

// Without a key, the tools answer what a person has to do. An agent would show of an exit only
// that the connection was closed.
func TestMCPWithoutKey(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), daemon.Binary(t), "mcp", "--data-dir", t.TempDir())
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "STASIS_") })
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_sessions"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := result.Content[0].(*mcp.TextContent)
	if !result.IsError || !strings.Contains(text.Text, "no daemon of this user runs") || !strings.Contains(text.Text, "STASIS_API_KEY in its env") {
		t.Errorf("a call without a key: %s", text.Text)
	}
	if err := agent.Close(); err != nil || cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("the end: %v, exit code %d", err, cmd.ProcessState.ExitCode())
	}
}
