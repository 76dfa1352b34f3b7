package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stasisd/stasis/client"
)

// daemon plays a daemon: each call has one answer, its status before its body.
func daemon(t *testing.T, answers map[string]string) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.RequestURI()]
		if !ok {
			answer = `404 {"code":"session_not_found","message":"no such session"}`
		}
		status, text, _ := strings.Cut(answer, " ")
		w.WriteHeader(map[string]int{"200": 200, "401": 401, "404": 404, "409": 409, "422": 422}[status])
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return client.New(server.URL, "key")
}

// agent is an MCP client of a server with these options. call returns the JSON or the error of a tool.
func agent(t *testing.T, o Options) (call func(tool string, args map[string]any) (text string, failed bool)) {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { served <- Run(ctx, o, theirs) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	return func(tool string, args map[string]any) (string, bool) {
		t.Helper()
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		text, _ := result.Content[0].(*mcp.TextContent)
		return text.Text, result.IsError
	}
}

// What a tool answers uses the words of the tools, never a field of the HTTP API, and says
// what to do next.
func TestAnswers(t *testing.T) {
	const (
		good  = `{"id":"snap-1","user_id":"ada","created_at":"2026-11-20T10:00:00Z","logins":[{"site":"a.example"}]}`
		empty = `{"id":"snap-2","user_id":"ada","logins":[]}`
	)
	api := daemon(t, map[string]string{
		"GET /v1/me": `200 {"user_id":"ada"}`,
		"POST /v1/sessions": `409 {"code":"no_snapshot","message":"restore_default_environment_from_user_id: user \"ada\" has no default environment; ` +
			`save one with save_as_default=true, or create with if_missing=fresh"}`,
		"GET /v1/snapshots?limit=1000&user_id=ada": `200 {"snapshots":[` + good + `]}`,
		"GET /v1/snapshots?limit=1000&user_id=bob": `200 {"snapshots":[]}`,
		"GET /v1/snapshots/snap-1":                 "200 " + good,
		"GET /v1/sessions/live":                    `200 {"session_id":"live"}`,
		"GET /v1/sessions/over":                    `200 {"session_id":"over","ended_at":"2026-11-20T10:00:00Z"}`,
		"DELETE /v1/sessions/live": `200 {"deleted":true,"undo_until":"2026-11-20T11:00:00Z",
			"message":"session ended; until undo_until a second DELETE with save_snapshot_mode=filesystem, or a resume, can save it"}`,
		"POST /v1/sessions/live/snapshots": `200 {"success":false,"code":"version_conflict","message":"x; repeat the call with default_conflict=overwrite to move it",
			"snapshot":` + good + `,"default":{"moved":false,"version":3,"reason":"another session moved it"}}`,
		"DELETE /v1/sessions/live?save_as_default=true&save_snapshot_mode=filesystem": `409 {"code":"version_conflict","message":"x; repeat the call with default_conflict=overwrite to move it",
			"snapshot":` + good + `,"default":{"moved":false,"version":3,"reason":"another session moved it"}}`,
		"DELETE /v1/sessions/live?default_conflict=overwrite&save_as_default=true&save_snapshot_mode=filesystem": `200 {"snapshot":` + empty + `,"default":{"moved":true,"version":4}}`,
		"GET /v1/users/ada/default":                    `200 {"snapshot_id":"snap-0"}`,
		"GET /v1/users/ada/default/history?limit=1000": `200 {"history":[{"version":4,"snapshot_id":"snap-2"},{"version":3,"snapshot_id":"snap-1"}]}`,
		"POST /v1/users/ada/default/check":             `409 {"code":"no_login_check","message":"the user's settings have no login_check; set one first"}`,
		"POST /v1/users/bob/default/check":             `404 {"code":"default_not_found","message":"the user has no default environment"}`,
	})
	call := agent(t, Options{Connect: func() (*client.Client, error) { return api, nil }})
	type args = map[string]any
	for _, c := range []struct {
		tool   string
		args   args
		failed bool
		says   []string
	}{
		{"start_session", args{}, true, []string{`user \"ada\" has no default`, "snapshot: snap-1", "a.example", "as_default: true"}},
		{"start_session", args{"user": "bob"}, true, []string{"fresh: true", "live_link and control: true", "save_session with as_default: true"}},
		{"start_session", args{"fresh": true, "snapshot": "snap-1"}, true, []string{"fresh: must not"}},
		{"check_login", args{}, true, []string{"no_login_check", "no tool can set one"}},
		{"check_login", args{"user": "bob"}, true, []string{"start_session with fresh: true"}},
		{"live_link", args{"session_id": "live", "minutes": 20000}, true, []string{"minutes: must be from 1 to 10080"}},
		{"open_devtools_port", args{"session_id": "live", "port": 99999}, true, []string{"port: must be from 1 to 65535"}},
		{"open_devtools_port", args{"session_id": "over"}, true, []string{"this session has ended", "start_session"}},
		{"end_session", args{"session_id": "nope"}, true, []string{"session_not_found", "list_sessions"}},
		{"end_session", args{"session_id": "live"}, false, []string{"2026-11-20T11:00:00Z", "save_session with end: true"}},
		{"save_session", args{"session_id": "live", "overwrite": true}, true, []string{"overwrite: needs as_default: true"}},
		{"save_session", args{"session_id": "live", "end": true, "label": "x"}, true, []string{"label: ", "then end_session"}},
		{"save_session", args{"session_id": "live", "as_default": true}, false,
			[]string{`"is_default":false`, "snapshot snap-1; the session continues", "another session moved it", "again with as_default: true and overwrite: true"}},
		{"save_session", args{"session_id": "live", "as_default": true, "end": true}, false,
			[]string{`"is_default":false`, "snapshot snap-1; the session has ended", "again with as_default: true, end: true and overwrite: true"}},
		{"save_session", args{"session_id": "live", "as_default": true, "end": true, "overwrite": true}, false,
			[]string{`"is_default":true`, `"warning":"the new default has no site`, "a.example", "snapshot: snap-1"}},
	} {
		text, failed := call(c.tool, c.args)
		if failed != c.failed {
			t.Errorf("%s %v: failed %v: %s", c.tool, c.args, failed, text)
		}
		if !json.Valid([]byte(text)) { // an error: quoted as in the other answers
			text = strings.ReplaceAll(text, `"`, `\"`)
		}
		for _, part := range c.says {
			if !strings.Contains(text, part) {
				t.Errorf("%s %v does not say %s: %s", c.tool, c.args, part, text)
			}
		}
		if i := slices.IndexFunc(apiFields, func(field string) bool { return strings.Contains(text, field) }); i >= 0 {
			t.Errorf("%s %v names %s of the HTTP API: %s", c.tool, c.args, apiFields[i], text)
		}
	}
}

// apiFields are fields of the HTTP API that no tool has.
var apiFields = []string{"restore_", "save_as_default", "if_missing", "save_snapshot_mode", "default_conflict", "start_url", "expires_in_seconds", "undo_until", "DELETE", "--"}

// Messages of the daemon are in the words of the tools.
func TestToolWords(t *testing.T) {
	for message, want := range map[string]string{
		`restore_from_environment_id: there is no snapshot or session "x" for this key`:                         `snapshot: there is no snapshot or session "x" for this key`,
		"start_url: must be an http or https URL":                                                               "url: must be an http or https URL",
		"save one with save_as_default=true, or create with if_missing=fresh":                                   "save one with save_session and as_default: true, or call start_session with fresh: true",
		"it has ended, and until T a DELETE with save_snapshot_mode=filesystem, or a resume, can still save it": "it has ended, and until T save_session with end: true can still save it",
		"end it with save_snapshot_mode=filesystem, or create with if_missing=fresh":                            "call save_session with end: true, or call start_session with fresh: true",
		"the default was not moved: x; repeat the call with default_conflict=overwrite to move it":              "the default was not moved: x; call save_session again with overwrite: true to move it",
	} {
		if got := toolWords(message); got != want {
			t.Errorf("%s\n became %s\n    want %s", message, got, want)
		}
	}
}

// Every tool answers without a daemon and without a key, with what a person has to do. Once
// that is done, the tools work.
func TestWithoutDaemon(t *testing.T) {
	var ready atomic.Bool
	api := daemon(t, map[string]string{"GET /v1/sessions?limit=1000&status=ready": `401 {"code":"unauthorized","message":"a valid API key is needed"}`})
	call := agent(t, Options{Connect: func() (*client.Client, error) {
		if !ready.Load() {
			return nil, errors.New("--key: is missing")
		}
		return api, nil
	}})
	if text, failed := call("list_sessions", nil); !failed || !strings.Contains(text, "--key: is missing") || !strings.Contains(text, "set STASIS_URL and STASIS_API_KEY") {
		t.Errorf("without a key: %s", text)
	}
	ready.Store(true)
	if text, failed := call("list_sessions", nil); !failed || !strings.Contains(text, "set STASIS_API_KEY to a key of this daemon") {
		t.Errorf("with a wrong key: %s", text)
	}
	api.URL = "http://127.0.0.1:1"
	if text, failed := call("list_sessions", nil); !failed || !strings.Contains(text, "whether stasis serve runs") {
		t.Errorf("without a daemon: %s", text)
	}
}

// A port is closed when the tool that ends its session answers. A port that this server holds
// moves to the session that asks for it.
func TestPorts(t *testing.T) {
	live := func(id string) string { return `200 {"session_id":"` + id + `"}` }
	api := daemon(t, map[string]string{
		"GET /v1/sessions/one": live("one"), "GET /v1/sessions/two": live("two"), "GET /v1/sessions/dying": live("dying"),
		"DELETE /v1/sessions/one":                               `200 {"deleted":true}`,
		"DELETE /v1/sessions/two?save_snapshot_mode=filesystem": `200 {"snapshot":{"id":"snap"}}`,
	})
	held := map[int]string{7: "another program"} // sessions by port
	attach := func(_ context.Context, session string, number int) (*Port, error) {
		if held[number] != "" {
			return nil, ErrPortTaken
		}
		if session == "dying" {
			return nil, errors.New("the session is completed")
		}
		held[number] = session
		return &Port{Number: number, Done: make(chan struct{}), Close: func() { delete(held, number) }}, nil
	}
	call := agent(t, Options{Connect: func() (*client.Client, error) { return api, nil }, Attach: attach})
	for _, step := range []struct {
		tool string
		args map[string]any
		says string
		held string // who holds port 9222 then
	}{
		{"open_devtools_port", map[string]any{"session_id": "one", "port": 9222}, "http://127.0.0.1:9222", "one"},
		{"open_devtools_port", map[string]any{"session_id": "one", "port": 9222}, "http://127.0.0.1:9222", "one"},
		{"open_devtools_port", map[string]any{"session_id": "nope", "port": 9222}, "session_not_found", "one"},
		{"open_devtools_port", map[string]any{"session_id": "two", "port": 9222}, "http://127.0.0.1:9222", "two"},
		{"open_devtools_port", map[string]any{"session_id": "two", "port": 7}, "port: another program of this machine listens on port 7", "two"},
		{"end_session", map[string]any{"session_id": "one"}, "", "two"},
		{"save_session", map[string]any{"session_id": "two", "end": true}, "snapshot snap", ""},
		{"open_devtools_port", map[string]any{"session_id": "one", "port": 9222}, "http://127.0.0.1:9222", "one"},
		{"open_devtools_port", map[string]any{"session_id": "dying", "port": 9222}, "the port of session one is closed now", ""},
		{"end_session", map[string]any{"session_id": "one"}, "", ""},
	} {
		text, _ := call(step.tool, step.args)
		if !strings.Contains(text, step.says) || held[9222] != step.held {
			t.Errorf("%s %v: %s; port 9222 is held by %q, want %q", step.tool, step.args, text, held[9222], step.held)
		}
	}
}
