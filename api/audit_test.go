package api

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/api/apitest"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/auditlog"
)

// fakeAudit keeps what was recorded.
type fakeAudit struct {
	mu     sync.Mutex
	acts   []auditlog.Act
	filter auditlog.Filter
	state  auditlog.State
	// lookedUp is how often a user was looked up.
	lookedUp int
}

func (f *fakeAudit) Record(a auditlog.Act) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acts = append(f.acts, a)
}

// taken returns what was recorded since the last call.
func (f *fakeAudit) taken() []auditlog.Act {
	f.mu.Lock()
	defer f.mu.Unlock()
	acts := f.acts
	f.acts = nil
	return acts
}

func (f *fakeAudit) UserOf(_ context.Context, sessionID, _ string) string {
	f.mu.Lock()
	f.lookedUp++
	f.mu.Unlock()
	if sessionID == "of-bob" {
		return "bob"
	}
	return "alice"
}

func (f *fakeAudit) State() auditlog.State { return f.state }

func (f *fakeAudit) Page(_ context.Context, _ access.Caller, filter auditlog.Filter) ([]auditlog.Entry, int64, error) {
	f.filter = filter
	return []auditlog.Entry{{Number: 8, At: born, By: "key", Call: "createKey", Outcome: "ok", Count: 1}}, 8, nil
}

// Every route has a line in the table, with the name that openapi.yaml gives it.
func TestEveryRouteHasAnAuditClass(t *testing.T) {
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	used, lines := map[string]string{}, 0
	for _, route := range newRig(t, nil).server.echo.Routes() {
		name := route.Method + " " + route.Path
		rule, known := auditRules[name]
		if !known || rule.class == 0 {
			t.Errorf("%s has no line in auditRules: say whether the audit log records its calls", name)
			continue
		}
		if same := strings.TrimSuffix(name, "/"); used[rule.call] != "" && used[rule.call] != same {
			t.Errorf("%s: another route is called %s too", name, rule.call)
		} else {
			used[rule.call] = same
		}
		lines++
		path := route.Path
		for _, part := range strings.Split(path, "/") {
			if param, ok := strings.CutPrefix(part, ":"); ok {
				path = strings.Replace(path, part, "{"+param+"}", 1)
			}
		}
		op := doc.Paths.Value(path).GetOperation(route.Method)
		if op.OperationID != "" && op.OperationID != rule.call {
			t.Errorf("%s is %s in openapi.yaml, and %s in auditRules", name, op.OperationID, rule.call)
		}
		if open := op.Security != nil && len(*op.Security) == 0; open != (rule.class == auditNever) {
			t.Errorf("%s: a key is needed: %v, class %d", name, !open, rule.class)
		}
		queries := op.Parameters.GetByInAndName("query", "user_id") != nil && rule.call != "listAudit" ||
			rule.call == "connect" // openapi.yaml has its fields as one parameter
		if queries != queriesUser[rule.call] {
			t.Errorf("%s: a user_id in its query names its user: %t by openapi.yaml, %t by queriesUser", name, queries, queriesUser[rule.call])
		}
		if rule.class == auditOthers && (route.Method == http.MethodDelete || route.Method == http.MethodPut || route.Method == http.MethodPatch) {
			t.Errorf("%s changes something: its calls must be recorded", name)
		}
	}
	if lines != len(auditRules) {
		t.Errorf("%d routes, but %d lines in auditRules", lines, len(auditRules))
	}
}

// Calls have entries with their objects and outcomes, once, and without secrets.
func TestAuditedCalls(t *testing.T) {
	r := newRig(t, nil)
	own := netip.MustParseAddr("127.0.0.1")
	for _, x := range []struct {
		method, path, body string
		fails              fault.Code
		want               auditlog.Act
	}{
		{"POST", "/v1/sessions", `{"restore_default_environment_from_user_id":"alice"}`, "", auditlog.Act{Call: "createSession", UserID: "alice", SessionID: liveID, SnapshotID: "snap-1"}},
		{"POST", "/v1/sessions", `{"user_id":"bob","session_id":"mine"}`, fault.StoreFailed, auditlog.Act{Call: "createSession", UserID: "bob", SessionID: "mine"}},
		{"DELETE", "/v1/sessions/live-1?save_snapshot_mode=filesystem", "", "", auditlog.Act{Call: "deleteSession", UserID: "alice", SessionID: liveID, SnapshotID: "snap-1", Detail: "filesystem default"}},
		{"PATCH", "/v1/users/bob", `{"engine":"shell","retention":null}`, "", auditlog.Act{Call: "patchUser", UserID: "bob", Detail: "engine retention"}},
		{"POST", "/v1/keys", `{"name":"ci","rights":["use","secrets"],"all_users":true}`, "", auditlog.Act{Call: "createKey", UserID: "alice", Object: "key-2", Detail: "[use secrets] all_users"}},
		{"PATCH", "/v1/keys/key-2", `{"quotas":{"sessions":3,"bytes":null}}`, "", auditlog.Act{Call: "changeKey", UserID: "default", Object: "key-2", Detail: "sessions bytes"}},
		{"PATCH", "/v1/keys/key-2", `{"quotas":null}`, "", auditlog.Act{Call: "changeKey", UserID: "default", Object: "key-2", Detail: "quotas"}},
		{"PUT", "/v1/webhooks/secrets", `{"url":"https://a.example:8443/hook/s3cret?token=abc"}`, "", auditlog.Act{Call: "setWebhookSecret", UserID: "alice", Object: "https://a.example:8443"}},
		{"DELETE", "/v1/webhooks/secrets?url=https%3A%2F%2Fa.example%2Fs3cret&user_id=bob", "", "", auditlog.Act{Call: "deleteWebhookSecret", UserID: "bob", Object: "https://a.example"}},
		{"DELETE", "/v1/webhooks/secrets", "", "", auditlog.Act{Call: "deleteWebhookSecret", UserID: "alice"}},
		{"DELETE", "/v1/keys/key-2", "", "", auditlog.Act{Call: "deleteKey", Object: "key-2"}},
		{"GET", "/v1/snapshots/snap-1/state?format=netscape", "", "", auditlog.Act{Call: "snapshotState", UserID: "alice", SnapshotID: "snap-1", Detail: "netscape"}},
		{"PUT", "/v1/users/alice/default", `{"snapshot_id":"snap-1"}`, "", auditlog.Act{Call: "putDefault", UserID: "alice", SnapshotID: "snap-1"}},
		{"POST", "/v1/sessions/live-1/links?ticket=control-ticket", `{"control":true}`, "", auditlog.Act{Call: "createLink", By: "ticket", UserID: "alice", SessionID: liveID, Object: "link-1", Detail: "control"}},
		{"PUT", "/v1/sessions/any/scopes/agent/desk/snapshots/latest", document, "", auditlog.Act{Call: "putDocument", UserID: "alice", SessionID: "any", Object: "agent/desk/latest"}},
	} {
		r.err = nil
		if x.fails != "" {
			r.err = fault.New(x.fails, "fake", "")
		}
		r.do(t, x.method, x.path, x.body)
		if x.want.By == "" {
			x.want.By = "key"
		}
		acts := r.audit.taken()
		if len(acts) != 1 {
			t.Fatalf("%s %s: %d entries", x.method, x.path, len(acts))
		}
		got := acts[0]
		if fault.CodeOf(got.Err) != x.fails || got.Refused || got.Address != own || got.KeyID == "" || got.KeyUser == "" {
			t.Errorf("%s %s: %+v", x.method, x.path, got)
		}
		got.Err, got.KeyID, got.KeyUser, got.Address = nil, "", "", netip.Addr{}
		if diff := cmp.Diff(x.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s %s: -want +got:\n%s", x.method, x.path, diff)
		}
	}
}

// Of a user_id, an entry has only what can be a user of that call.
func TestAuditedUsers(t *testing.T) {
	r := newRig(t, nil)
	for _, x := range []struct{ method, path, want string }{
		{"POST", "/v1/prune?user_id=bob", ""},
		{"DELETE", "/v1/snapshots/snap-1?user_id=bob", "alice"},
		{"DELETE", "/v1/keys/key-2?user_id=bob", ""},
		{"POST", "/v1/snapshots?format=none&user_id=bob", "bob"},
		{"POST", "/v1/snapshots?format=none&user_id=b%0Aob", ""},
		{"DELETE", "/v1/sessions?user_id=" + strings.Repeat("b", maxUserID+1), ""},
		{"PATCH", "/v1/users/b%0Aob", ""},
		{"PATCH", "/v1/users/b%FFob?user_id=bob", ""},
	} {
		r.do(t, x.method, x.path, "{}")
		acts := r.audit.taken()
		if len(acts) != 1 || acts[0].UserID != x.want {
			t.Errorf("%s %s: %+v", x.method, x.path, acts)
		}
	}
}

// Reads have an entry if they are refused for a missing right, are of another user's data,
// or give out secrets. Such entries are bounded, and so are those of refused calls.
func TestAuditedReads(t *testing.T) {
	r := newRig(t, nil)
	for _, x := range []struct {
		method, path, body string
		headers            []string
		fails              fault.Code
		in                 string // the source of its entries; "": there are none
	}{
		{method: "GET", path: "/v1/sessions/live-1"},
		{method: "GET", path: "/v1/sessions/live-1", fails: fault.SessionNotFound},
		{method: "GET", path: "/v1/sessions/live-1/messages"},
		{method: "GET", path: "/v1/sessions/live-1/messages?sanitize=false", in: "key "},
		{method: "GET", path: "/v1/sessions/live-1/runs/run-1/events?sanitize=false", in: "key "},
		{method: "GET", path: "/v1/snapshots/snap-1/diff/snap-1?values=true", in: "key "},
		{method: "GET", path: "/v1/users/bob", in: "key "},
		{method: "GET", path: "/v1/sessions/live-1", fails: fault.Forbidden, in: "key "},
		{method: "GET", path: "/v1/sessions/of-bob", fails: fault.SessionNotFound, in: "key "},
		{method: "GET", path: "/v1/audit", in: "key "},
		{method: "POST", path: "/v1/sessions", body: `{"user_id":7}`, in: "refused key "},
		{method: "POST", path: "/v1/sessions", fails: fault.TooManySessions, in: "refused key "},
		{method: "DELETE", path: "/v1/sessions/live-1", headers: []string{"Authorization: Bearer wrong-key-that-is-long"}, in: "unknown"},
		{method: "GET", path: "/v1/me", headers: []string{"Authorization: "}, in: "unknown"},
		{method: "GET", path: "/v1/sessions/live-1/cdp?ticket=no-ticket", headers: []string{"Authorization: "}, in: "unknown"},
		{method: "GET", path: "/healthz"},
		{method: "GET", path: "/v1/nothing"},
	} {
		r.err = nil
		if x.fails != "" {
			r.err = fault.New(x.fails, "fake", "")
		}
		r.do(t, x.method, x.path, x.body, x.headers...)
		acts := r.audit.taken()
		switch {
		case x.in == "" && len(acts) == 0:
		case len(acts) != 1 || acts[0].Repeats == nil || !strings.HasPrefix(acts[0].Repeats.In, x.in) || x.in == "":
			t.Errorf("%s %s, which fails with %q: %+v", x.method, x.path, x.fails, acts)
		case x.in == "unknown" && (acts[0].By != auditlog.ByUnknown || acts[0].SessionID != "" || acts[0].KeyID != ""):
			t.Errorf("%s %s: %+v", x.method, x.path, acts[0])
		}
	}
	r.err, r.panics = nil, true
	r.do(t, "DELETE", "/v1/users/alice/default", "")
	if acts := r.audit.taken(); len(acts) != 1 || !fault.Is(acts[0].Err, fault.Internal) || acts[0].Refused {
		t.Errorf("a panic: %+v", acts)
	}
}

// A key for every user that lists the data of all users has an entry, with the object "all".
func TestAuditedListings(t *testing.T) {
	r := newRig(t, nil)
	for _, path := range []string{"/v1/sessions", "/v1/snapshots", "/v1/webhooks/secrets", "/v1/webhooks/deliveries", "/v1/extensions"} {
		r.everyUser = false
		r.do(t, "GET", path, "")
		if acts := r.audit.taken(); len(acts) != 0 {
			t.Errorf("%s of the key's user: %+v", path, acts)
		}
		r.everyUser = true
		r.do(t, "GET", path, "")
		acts := r.audit.taken()
		if len(acts) != 1 || acts[0].Object != auditlog.OfEverybody || acts[0].UserID != "" || acts[0].Repeats == nil || !strings.HasPrefix(acts[0].Repeats.In, "key ") {
			t.Errorf("%s: %+v", path, acts)
		}
	}
	r.do(t, "GET", "/v1/sessions?user_id=alice", "")
	if acts := r.audit.taken(); len(acts) != 0 {
		t.Errorf("of the own user: %+v", acts)
	}
}

func TestListAudit(t *testing.T) {
	r := newRig(t, nil)
	answer, body := r.do(t, "GET", "/v1/audit?object=a%20b&others=true&start_after=12&since=2026-11-27T06:00:00Z", "")
	if answer.StatusCode != 200 || answer.Header.Get("X-Next-Token") != "8" || !strings.Contains(body, `"at":"`) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	if f := r.audit.filter; f.Object != "a b" || !f.Others || f.StartAfter != 12 || f.Since.IsZero() || !f.Until.IsZero() || f.Limit != 100 {
		t.Errorf("%+v", f)
	}
	for _, bad := range []string{"outcome=maybe", "since=yesterday", "until=1", "start_after=x", "start_after=0", "limit=0", "who=me", "session_id=A"} {
		if answer, body := r.do(t, "GET", "/v1/audit?"+bad, ""); answer.StatusCode != 422 || !strings.Contains(body, strings.Split(bad, "=")[0]) {
			t.Errorf("%s: %d %s", bad, answer.StatusCode, body)
		}
	}
	r.audit.state = auditlog.State{Failing: true, Waiting: 3, Lost: 2}
	if _, body := r.do(t, "GET", "/readyz", ""); !strings.Contains(body, `"audit":{"recording":false,"waiting":3,"lost":2}`) {
		t.Errorf("%s", body)
	}
}
