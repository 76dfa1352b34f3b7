package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/api/apitest"
	"github.com/stasisd/stasis/fault"
)

// validRequests has one valid request for every route. The rig's client checks request and answer
// against openapi.yaml.
var validRequests = []struct {
	method, path, body string
	status             int
}{
	{"POST", "/v1/sessions", "", 201},
	{"POST", "/v1/sessions", `{"agent_name":"agi-0","goal":"","max_steps":100,"webhook_url":null,"agent_session_type":"managed-cdp","environment_type":"chrome-1","labels":{"a":""},"restore_tabs":false,"wait_seconds":0,"engine":"shell"}`, 201},
	{"POST", "/v1/sessions", `{"webhook_url":"https://hooks.example/stasis?a=b"}`, 201},
	{"GET", "/v1/webhooks/deliveries", "", 200},
	{"GET", "/v1/webhooks/deliveries?state=failed&limit=5&start_after=d-1", "", 200},
	{"POST", "/v1/webhooks/deliveries/d-1/resend", "", 200},
	{"GET", "/v1/webhooks/secrets?user_id=alice", "", 200},
	{"PUT", "/v1/webhooks/secrets", "", 200},
	{"PUT", "/v1/webhooks/secrets", `{"user_id":"alice","url":"https://hooks.example/a?b=c","secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw","overlap_seconds":60}`, 200},
	{"DELETE", "/v1/webhooks/secrets?url=https://hooks.example/a", "", 204},
	{"POST", "/v1/sessions", `{"auto_save":true}`, 201},
	{"POST", "/v1/sessions", `{"auto_save":false}`, 201},
	{"POST", "/v1/sessions", `{"auto_save":{"interval_seconds":5,"on":["login"],"keep":1}}`, 201},
	{"GET", "/v1/sessions", "", 200},
	{"GET", "/v1/sessions?status=running&user_id=alice&limit=5&start_after=live-1", "", 200},
	{"DELETE", "/v1/sessions?user_id=alice&save_snapshot_mode=memory&save_as_default=true&default_conflict=overwrite", "", 200},
	{"DELETE", "/v1/sessions?all=true", "", 200},
	{"GET", "/v1/sessions/live-1", "", 200},
	{"GET", "/v1/sessions/ended-1", "", 200},
	{"DELETE", "/v1/sessions/live-1?save_snapshot_mode=filesystem&save_as_default=true", "", 200},
	{"DELETE", "/v1/sessions/ended-1?save_snapshot_mode=filesystem&save_as_default=true", "", 409},
	{"GET", "/v1/sessions/live-1/restore-report", "", 200},
	{"GET", "/v1/sessions/live-1/status", "", 200},
	{"GET", "/v1/sessions/ended-1/runs", "", 200},
	{"GET", "/v1/sessions/live-1/runs/run-1/events", "", 200},
	{"GET", "/v1/sessions/live-1/runs/run-1/events?after=1&limit=5&sanitize=false", "", 200},
	{"GET", "/v1/sessions/live-1/events?event_types=step,done&include_history=true&sanitize=true", "", 200},
	{"GET", "/v1/sessions/ended-1/events", "", 200},
	{"POST", "/v1/sessions", `{"record":["screenshot","console"]}`, 201},
	{"POST", "/v1/sessions/live-1/pause", "", 200},
	{"POST", "/v1/sessions/live-1/resume", "", 200},
	{"POST", "/v1/sessions/live-1/resume", `{"snapshot_id":"snap-1"}`, 200},
	{"POST", "/v1/sessions", `{"auto_save":{"on":["message"]}}`, 201},
	{"POST", "/v1/sessions/live-1/cancel", "", 200},
	{"POST", "/v1/sessions/live-1/message", `{"message":"Go on","config_updates":{},"start_url":"https://a.example/"}`, 200},
	{"POST", "/v1/sessions/live-1/message", `{"message":"Which one?","type":"QUESTION"}`, 200},
	{"POST", "/v1/sessions/live-1/message", `{"message":{"flights":[]},"type":"DONE"}`, 200},
	{"POST", "/v1/sessions/live-1/message", `{"type":"TOOL","name":"click","arguments":{"selector":"#buy"},"result":null}`, 200},
	{"GET", "/v1/sessions/live-1/messages", "", 200},
	{"GET", "/v1/sessions/ended-1/messages?after_id=3&sanitize=false", "", 200},
	{"POST", "/api/v1/public/memory/v2/session", `{"session_id":"Any ID","project_path":"/p","files_modified":["a"],"commands_run":["b"],"key_decisions":[],"open_tasks":null,"event":"pre_compact"}`, 200},
	{"GET", "/api/v1/public/memory/v2/session/latest", "", 200},
	{"GET", "/api/v1/public/memory/v2/session/Any%20ID", "", 200},
	{"POST", "/v1/memory/v2/session", `{"session_id":"s"}`, 200},
	{"GET", "/v1/memory/v2/session/latest?user_id=alice", "", 200},
	{"GET", "/v1/memory/v2/session/s", "", 200},
	{"POST", "/memory/v2/session", `{"session_id":"s","replace":true,"mood":{"b":1.50,"a":[null]},"extra":{"of":"a note that was read"}}`, 200},
	{"GET", "/memory/v2/session/latest", "", 200},
	{"GET", "/memory/v2/session/s", "", 200},
	{"GET", "/v1/sessions/live-1/notes", "", 200},
	{"POST", "/v1/sessions/live-1/navigate", `{"url":"https://a.example/"}`, 200},
	{"GET", "/v1/sessions/live-1/screenshot", "", 200},
	{"GET", "/v1/sessions/live-1/live?ticket=view-ticket", "", 200},
	{"POST", "/v1/sessions/live-1/live/save?ticket=control-ticket", "", 200},
	{"POST", "/v1/sessions/live-1/live/save?default_conflict=overwrite", "", 200},
	{"POST", "/v1/sessions/ended-1/live/save", "", 409},
	{"GET", "/v1/sessions/live-1/live/files?ticket=shared-ticket", "", 200},
	{"POST", "/v1/sessions/live-1/links", "", 201},
	{"POST", "/v1/sessions/live-1/links?ticket=control-ticket", `{"control":true,"expires_in_seconds":60}`, 201},
	{"GET", "/v1/sessions/live-1/links", "", 200},
	{"DELETE", "/v1/sessions/live-1/links/link-1?ticket=control-ticket", "", 204},
	{"GET", "/v1/sessions/live-1/json/version", "", 200},
	{"GET", "/v1/sessions/live-1/json/version/?ticket=session-ticket", "", 200},
	{"GET", "/v1/sessions/live-1/json/list", "", 200},
	{"GET", "/v1/sessions/live-1/json/list/", "", 200},
	{"POST", "/v1/tickets", "", 201},
	{"GET", "/v1/models?filter=cdp", "", 200},
	{"POST", "/v1/sessions", `{"extensions":["abcdefghijklmnopabcdefghijklmnop"]}`, 201},
	{"GET", "/v1/extensions", "", 200},
	{"GET", "/v1/extensions/abcdefghijklmnopabcdefghijklmnop", "", 200},
	{"DELETE", "/v1/extensions/abcdefghijklmnopabcdefghijklmnop", "", 204},
	{"DELETE", "/v1/extensions/abcdefghijklmnopabcdefghijklmnop?force=true", "", 204},
	{"GET", "/v1/me", "", 200},
	{"GET", "/v1/keys", "", 200},
	{"POST", "/v1/keys", `{"name":"ci","rights":["use","secrets"]}`, 201},
	{"POST", "/v1/keys", `{"name":"ci","quotas":{"sessions":2,"parked":0,"bytes":null}}`, 201},
	{"PATCH", "/v1/keys/key-2", `{"quotas":{"sockets":5}}`, 200},
	{"PATCH", "/v1/keys/key-2", `{"quotas":null}`, 200},
	{"DELETE", "/v1/keys/key-2", "", 204},
	{"GET", "/v1/audit", "", 200},
	{"GET", "/v1/audit?user_id=alice&key_id=key-1&call=createSession&session_id=live-1&object=snap-1&outcome=ok&since=2026-11-27T06:00:00Z&until=2026-11-27T07:00:00Z&others=true&oldest_first=true&limit=5&start_after=7", "", 200},
	{"GET", "/v1/users/alice", "", 200},
	{"PATCH", "/v1/users/alice", `{"login_check":{"url":"https://a.example/","status":200,"selector":"#out","absent_selector":"#in","text":"Hello","cookie":"sid","timeout_seconds":5,"before_default":true,"check_every_seconds":3600},"engine":"shell"}`, 200},
	{"GET", "/v1/users/a%2Fb", "", 200},
	{"PATCH", "/v1/users/alice", `{"login_check":null}`, 200},
	{"POST", "/v1/users/alice/default/check", "", 200},
	{"GET", "/v1/users/alice/default", "", 200},
	{"PUT", "/v1/users/alice/default", `{"snapshot_id":"snap-1","if_version":0}`, 200},
	{"DELETE", "/v1/users/alice/default", "", 204},
	{"GET", "/v1/users/alice/default/history?limit=2&start_after=3", "", 200},
	{"POST", "/v1/sessions/live-1/snapshots", "", 201},
	{"POST", "/v1/sessions/live-1/snapshots", `{"mode":"filesystem","save_as_default":true,"default_conflict":"overwrite","label":"before"}`, 201},
	{"POST", "/v1/sessions/live-1/snapshots", `{"label":"same"}`, 200},
	{"GET", "/v1/sessions/live-1/snapshots", "", 200},
	{"GET", "/v1/sessions/ended-1/snapshots?limit=1&start_after=snap-1", "", 200},
	{"GET", "/v1/sessions/ended-1/snapshots/latest", "", 200},
	{"GET", "/v1/snapshots", "", 200},
	{"GET", "/v1/snapshots?user_id=alice&limit=5&start_after=snap-1", "", 200},
	{"GET", "/v1/snapshots/snap-1", "", 200},
	{"DELETE", "/v1/snapshots/snap-1", "", 204},
	{"POST", "/v1/snapshots/snap-1/verify", "", 200},
	{"POST", "/v1/prune", "", 200},
	{"POST", "/v1/prune", `{"user_id":"alice","dry_run":true}`, 200},
	{"POST", "/v1/prune", `{"all":true}`, 200},
	{"PATCH", "/v1/users/alice", `{"retention":{"keep_last":3,"keep_within_seconds":604800,"keep_labelled":true}}`, 200},
	{"POST", "/v1/snapshots?format=playwright&user_id=alice&label=x&save_as_default=true&default_conflict=overwrite", "{}", 201},
	{"GET", "/v1/snapshots/snap-1/state", "", 200},
	{"GET", "/v1/snapshots/snap-1/state?format=playwright&indexed_db=true", "", 200},
	{"GET", "/v1/snapshots/snap-1/state?format=netscape&envelope=true", "", 200},
	{"GET", "/v1/users/alice/default/state?format=netscape", "", 200},
	{"GET", "/v1/snapshots/snap-1/diff/snap-1", "", 200},
	{"GET", "/v1/snapshots/snap-1/diff/snap-1?values=true", "", 200},
	{"GET", "/v1/snapshots/snap-1/archive", "", 200},
	{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/" + documentID, document, 204},
	{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/" + documentID + "?latest=true", document, 204},
	{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/latest", document, 204},
	{"GET", "/v1/sessions/any/scopes/agent/desk/snapshots/latest", "", 200},
	{"DELETE", "/v1/sessions/any/scopes/multiAgent/desk/snapshots/" + documentID, "", 204},
	{"GET", "/v1/sessions/any/scopes/agent/desk/snapshots", "", 200},
	{"GET", "/v1/sessions/any/scopes/agent/desk/snapshots?limit=1&start_after=" + documentID, "", 200},
	{"GET", "/v1/sessions/any/scopes/agent/desk/manifest", "", 200},
	{"PUT", "/v1/sessions/any/scopes/agent/desk/manifest", manifest, 204},
	{"DELETE", "/v1/sessions/any/scopes", "", 204},
	{"GET", "/v1/sessions/live-1/files", "", 200},
	{"GET", "/v1/sessions/live-1/files/a%20b.html", "", 200},
	{"DELETE", "/v1/sessions/live-1/files/a%20b.html", "", 204},
	{"GET", "/healthz", "", 200},
	{"GET", "/readyz", "", 200},
	{"GET", "/metrics", "", 200},
	{"GET", "/openapi.yaml", "", 200},
}

// testedElsewhere has the routes that other tests cover: WebSockets, uploads.
var testedElsewhere = []string{
	"GET /v1/connect", "GET /v1/sessions/{session_id}/cdp", "GET /v1/sessions/{session_id}/cdp/page/{target_id}",
	"POST /v1/sessions/{session_id}/files", "POST /v1/extensions", "POST /v1/sessions/{session_id}/live/files", "GET /v1/sessions/{session_id}/live/files/{name}",
}

func TestEveryRouteAnswersAsDescribed(t *testing.T) {
	r := newRig(t, nil)
	if err := os.WriteFile(filepath.Join(r.dir, "a b.html"), []byte("<b>x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range validRequests {
		answer, body := r.do(t, x.method, x.path, x.body)
		if answer.StatusCode != x.status {
			t.Errorf("%s %s: got %d %s, want %d", x.method, x.path, answer.StatusCode, body, x.status)
		}
	}
}

// Whatever error the service returns, the answer is as described and does not contain the
// cause. The same holds for a panic.
func TestEveryRouteFailsAsDescribed(t *testing.T) {
	r := newRig(t, nil)
	for _, code := range []fault.Code{
		fault.Internal, fault.Forbidden, fault.SessionNotFound, fault.SessionNotRunning, fault.TooManySessions,
		fault.StoreFailed, fault.BrowserFailed, fault.ShuttingDown, fault.Timeout, fault.StoreFull,
	} {
		for _, x := range validRequests {
			if !strings.HasPrefix(x.path, "/v1/sessions") || x.method != "POST" {
				continue
			}
			r.err = &fault.Error{Code: code, Op: "fake", Err: os.ErrPermission}
			answer, body := r.do(t, x.method, x.path, x.body)
			if answer.StatusCode != statusOf(code) || !strings.Contains(body, string(code)) || strings.Contains(body, "permission") {
				t.Errorf("%s %s failing with %s: got %d %s", x.method, x.path, code, answer.StatusCode, body)
			}
			if answer.StatusCode == 429 && answer.Header.Get("Retry-After") == "" {
				t.Errorf("%s: no Retry-After", x.path)
			}
		}
	}
	r.err, r.panics = nil, true
	answer, body := r.do(t, "GET", "/v1/sessions/live-1/status", "")
	if answer.StatusCode != 500 || strings.Contains(body, "boom") || answer.Header.Get("X-Request-Id") == "" {
		t.Errorf("panic: got %d %s", answer.StatusCode, body)
	}
	if !strings.Contains(r.log.String(), "boom") {
		t.Error("panic: not in the log")
	}
}

// The routes of the server are those of openapi.yaml, and these tests have a request for
// each.
func TestRoutesAreThoseDescribed(t *testing.T) {
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	var described, built []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	r := newRig(t, nil)
	for _, route := range r.server.echo.Routes() {
		parts := strings.Split(route.Path, "/")
		for i, p := range parts {
			if name, ok := strings.CutPrefix(p, ":"); ok {
				parts[i] = "{" + name + "}"
			}
		}
		built = append(built, route.Method+" "+strings.Join(parts, "/"))
	}
	slices.Sort(described)
	slices.Sort(built)
	if diff := cmp.Diff(described, built); diff != "" {
		t.Errorf("openapi.yaml (-) and the server (+) differ:\n%s", diff)
	}
	if len(validRequests)+len(testedElsewhere) < len(built) {
		t.Errorf("%d routes; some have no request", len(built))
	}
}

// openapi.yaml and docs/sessions.md list every type of event.
func TestEveryEventIsDescribed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "session", "events", "event.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, spec := range file.Decls[0].(*ast.GenDecl).Specs { // the constants of the first declaration
		kind, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, kind)
	}
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, v := range doc.Components.Schemas["Event"].Value.Properties["type"].Value.Enum {
		listed = append(listed, v.(string))
	}
	slices.Sort(types)
	slices.Sort(listed)
	if diff := cmp.Diff(types, listed); diff != "" || len(types) < 10 {
		t.Errorf("types (-) and openapi.yaml (+) differ:\n%s", diff)
	}
	page, err := os.ReadFile("../docs/sessions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| type | data |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, kind := range types {
		if !strings.Contains(table, "`"+kind+"`") {
			t.Errorf("docs/sessions.md does not list the data of %s", kind)
		}
	}
}

// Every code of package fault has a status, and openapi.yaml lists it with exactly that
// status.
func TestEveryCodeHasAStatusAndADescription(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "fault", "codes.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
				code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				codes = append(codes, code)
			}
		}
		return true
	})
	if len(codes) < 30 {
		t.Fatalf("found only %d codes", len(codes))
	}
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	schema := doc.Components.Schemas["ErrorCode"].Value
	var listed []string
	for _, v := range schema.Enum {
		listed = append(listed, v.(string))
	}
	slices.Sort(codes)
	slices.Sort(listed)
	if diff := cmp.Diff(codes, listed); diff != "" {
		t.Errorf("codes (-) and openapi.yaml (+) differ:\n%s", diff)
	}
	for _, code := range codes {
		row := "| `" + code + "` | " + strconv.Itoa(statusOf(fault.Code(code))) + " |"
		if !strings.Contains(schema.Description, row) {
			t.Errorf("openapi.yaml has no row %q", row)
		}
	}
	if got := statusOf("never_defined"); got != http.StatusInternalServerError {
		t.Errorf("an unknown code: got %d", got)
	}
}
