package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostileAnswers are answers of the API in which every text that somebody else chose is
// hostile.
func hostileAnswers(t *testing.T) map[string]string {
	t.Helper()
	h, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("@H", string(h), "@T", `"2026-11-25T11:00:00.000Z"`, "@J", `"javascript:alert(1)"`).Replace
	component := `{"name":@H,"origin":@H,"saved":2,"restored":1,"dropped":1,"expired":0,"reason":@H}`
	snapshot := `{"id":"snap-1","session_id":"s-1","user_id":@H,"mode":"filesystem","label":@H,"created_at":@T,"size_bytes":2048,"chrome":@H,"engine":"chrome","components":[` + component + `],"warnings":[@H],"logins":[{"site":@H,"expected_end":@T,"basis":"cookie","names":[@H],"expired":true}]}`
	other := strings.Replace(snapshot, "snap-1", "snap-2", 1)
	report := `{"source":{"type":"session","id":"s-0"},"snapshot_id":"snap-1","mode":"filesystem","path":"warm","fallback_reason":@H,"duration_ms":12,"components":[` + component + `],"verification":"mismatch","differences":[{"component":@H,"origin":@H,"by":"site","missing":1,"names":[@H]}],"warnings":[@H]}`
	session := `{"session_id":"s-1","status":"STATUS","agent_name":@H,"goal":@H,"user_id":@H,"engine":"chrome","node_id":@H,"created_at":@T,"expires_at":@T,"ended_at":ENDED,"reason":@H,"cdp_url":"ws://127.0.0.1/cdp","vnc_url":@J,"agent_url":@J,"labels":{"a":@H},"usage":{"clients":1,"viewers":0,"memory_bytes":104857600,"measured_at":@T},"restored":` + report + `,"auto_save":{"interval_seconds":60,"last_error":@H},"outcome":{"message":@H,"snapshot":` + snapshot + `,"default":{"moved":false,"reason":@H}}}`
	live := strings.NewReplacer("STATUS", "ready", "ENDED", "null").Replace(session)
	ended := strings.NewReplacer("STATUS", "error", "ENDED", "@T", "s-1", "s-2").Replace(session)
	user := "/v1/users" + joinPath(hostile)
	answers := map[string]string{
		"GET /v1/sessions":               "[" + live + "," + ended + "]",
		"GET /v1/sessions/s-1":           live,
		"GET /v1/sessions/s-2":           ended,
		"GET /v1/sessions/s-1/snapshots": `{"snapshots":[` + snapshot + `]}`,
		"GET /v1/sessions/s-1/runs":      `{"runs":[{"run_id":"r-1","number":1,"status":"failed","cause":@H,"started_at":@T,"ended_at":@T}]}`,
		"GET /v1/sessions/s-1/messages":  `{"messages":[{"id":1,"type":"USER","role":"user","content":@H,"timestamp":@T},{"id":2,"type":"DONE","role":"assistant","content":{"a":@H},"timestamp":@T},{"id":3,"type":"TOOL","role":"tool","name":@H,"content":"","arguments":{"a":@H},"result":[@H],"timestamp":@T}],"has_more":true}`,
		"GET /v1/sessions/s-1/files":     `{"files":[{"name":@H,"size_bytes":1,"modified_at":@T},{"name":@J,"size_bytes":1,"modified_at":@T}]}`,
		"GET /v1/sessions/s-1/notes":     `{"session_id":@H,"updated_at":@T,"session_data":{"project_path":@H,"files_modified":[@H],"commands_run":[@H],"key_decisions":[@H],"open_tasks":[@H],"extra":{"a":@H,"b":{"c":@H}}}}`,
		"GET /v1/sessions/s-1/runs/r-1/events": `{"events":[{"sequence":1,"type":"navigated","timestamp":@T,"data":{"url":@J,"title":@H,"status":200}},{"sequence":2,"type":"message","timestamp":@T,"text":@H,"data":{"content":@H}},
			{"sequence":3,"type":"screenshot","timestamp":@T,"data":{"url":"https://a.example/","jpeg":"/9j/4AAQ"}},{"sequence":4,"type":"screenshot","timestamp":@T,"data":{"jpeg":@H}},{"sequence":5,"type":"console","timestamp":@T,"data":{"text":@H,"source_url":@J}}],"has_more":true,"next_after_sequence":5,"retention_gap":true}`,
		"GET " + user:                          `{"login_check":{"url":@J,"text":@H,"selector":@H,"before_default":true,"check_every_seconds":60}}`,
		"GET " + user + "/default":             `{"version":2,"snapshot_id":"snap-1","session_id":"s-1","moved_at":@T,"last_check":{"logged_in":false,"checked_at":@T,"url":@J,"error":@H,"conditions":[{"kind":"text","held":false}],"logged_out_since":@T}}`,
		"GET " + user + "/default/history":     `{"history":[{"version":2,"snapshot_id":"snap-1","moved_at":@T,"available":true},{"version":1,"snapshot_id":"snap-2","session_id":"s-1","moved_at":@T,"available":true},{"version":0,"snapshot_id":null,"moved_at":@T}]}`,
		"GET /v1/snapshots":                    `{"snapshots":[` + snapshot + `,` + other + `],"next_token":"snap-9"}`,
		"GET /v1/snapshots/snap-1":             snapshot,
		"GET /v1/snapshots/snap-1/diff/snap-2": `{"from":"snap-1","to":"snap-2","changes":[{"name":@H,"origin":@H,"added":[@H],"removed":[@H],"changed":[@H],"before":1,"after":2}],"not_compared":[{"name":@H,"origin":@H,"reason":@H}]}`,
		"GET /v1/extensions":                   `{"extensions":[{"id":"ext","user_id":@H,"name":@H,"version":@H,"size_bytes":1,"created_at":@T}]}`,
		"GET /v1/keys":                         `{"keys":[{"id":"key-1","name":@H,"user_id":@H,"rights":["use"],"created_at":@T}]}`,
		"GET /v1/webhooks/deliveries":          `[{"id":"d-1","session_id":"s-1","user_id":@H,"url":@J,"event":@H,"state":"failed","attempts":3,"last_error":@H,"created_at":@T,"next_attempt_at":@T}]`,
		"GET /readyz":                          `{"status":"ok","landlock":{"enforced":false,"abi":0}}`,
		"GET /metrics":                         "# HELP stasis_sessions_live Live sessions.\nstasis_sessions_live 2\ngo_threads 5\nprocess_resident_memory_bytes 2.097152e+06\n",
		"POST /v1/prune":                       `{"dry_run":true,"removed_count":2,"freed_bytes":10,"kept_count":1,"kept_by":{"newest":1},"kept":[{"size_bytes":5}]}`,
		"POST /v1/keys":                        `{"id":"key-2","name":@H,"secret":"the-new-secret","rights":["use"]}`,
	}
	for path, answer := range answers {
		answers[path] = fill(answer)
	}
	return answers
}

// pages are the paths of all pages.
func pages() []string {
	user := "?user_id=" + url.QueryEscape(hostile)
	return []string{
		"/console/", "/console/" + user, "/console/sessions/new" + user + "&restore=default&source=" + url.QueryEscape(hostile), "/console/sessions/s-1", "/console/sessions/s-1?login=1", "/console/sessions/s-2",
		"/console/sessions/s-1/runs/r-1", "/console/users", "/console/user" + user, "/console/user/default/remove" + user,
		"/console/snapshots" + user, "/console/snapshots/import" + user + "&label=" + url.QueryEscape(hostile), "/console/snapshots/snap-1", "/console/snapshots/snap-1/diff?with=snap-2", "/console/snapshots/snap-1/delete",
		"/console/extensions", "/console/extensions/ext/delete", "/console/keys", "/console/keys/key-1/delete", "/console/webhooks", "/console/daemon",
	}
}

// unsafeMarkup finds markup that no page of the console has.
var unsafeMarkup = regexp.MustCompile(`(?i)<script|<img src=x|<style|\son\w+=[^&]*>|(href|src|action)="?\s*javascript:|\sstyle=`)

// What pages, users and agents chose is text, and only http addresses are links.
func TestHostileTextIsText(t *testing.T) {
	r := newRig(t)
	r.answers = hostileAnswers(t)
	r.signIn(t)
	for _, path := range pages() {
		page := r.get(t, path)
		if found := unsafeMarkup.FindString(page); found != "" {
			t.Errorf("%s has %q", path, found)
		}
		if strings.Contains(page, goodKey) || !strings.Contains(page, "</html>") {
			t.Errorf("%s is not whole, or has the key", path)
		}
	}
	for path, want := range map[string]string{
		"/console/sessions/s-1":          "&lt;script&gt;alert(1)&lt;/script&gt;",
		"/console/sessions/s-1/runs/r-1": `<span class="address">javascript:alert(1)</span>`,
		"/console/daemon":                "2.0 MiB",
	} {
		if page := r.get(t, path); !strings.Contains(page, want) {
			t.Errorf("%s lacks %s", path, want)
		}
	}
	if page := r.get(t, "/console/sessions/s-1/runs/r-1"); strings.Count(page, "data:image/jpeg;base64,") != 1 {
		t.Error("not exactly the one picture is shown")
	}
}

// A page without data says what to do next.
func TestEmptyPages(t *testing.T) {
	r := newRig(t)
	for call := range hostileAnswers(t) {
		r.answers[call] = "{}"
	}
	r.answers["GET /v1/sessions"], r.answers["GET /v1/webhooks/deliveries"] = "[]", "[]"
	r.answers["GET /v1/users/new"] = "{}"
	r.signIn(t)
	for _, path := range pages() {
		r.get(t, path)
	}
	for path, want := range map[string]string{
		"/console/":                 "Create a session",
		"/console/user?user_id=new": "Log in by hand and save it",
		"/console/snapshots":        "import logins that another tool has saved",
		"/console/extensions":       "Upload one above",
		"/console/webhooks":         "--webhook-url",
		"/console/sessions/s-1":     "Nothing was saved yet",
	} {
		if page := r.get(t, path); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
}

// Each form makes one call of the API.
func TestForms(t *testing.T) {
	for _, x := range []struct{ path, form, call, answer string }{
		{"/console/sessions", "user_id=alice&start_url=a.example&restore=default&if_missing=fresh&engine=shell&idle_timeout_seconds=60&persist=1&record=1&max_lifetime_seconds=", `POST /v1/sessions {"engine":"shell","idle_timeout_seconds":60,"if_missing":"fresh","persist":true,"record":["screenshot"],"restore_default_environment_from_user_id":"alice","start_url":"https://a.example","user_id":"alice"}`, `{"session_id":"s-1"}`},
		{"/console/sessions", "restore=environment&source=snap-1&start_url=about:blank", `POST /v1/sessions {"restore_from_environment_id":"snap-1","start_url":"about:blank"}`, `{"session_id":"s-1"}`},
		{"/console/sessions/s-1/end", "save=", "DELETE /v1/sessions/s-1", `{}`},
		{"/console/sessions/s-1/end", "save=memory", "DELETE /v1/sessions/s-1?save_snapshot_mode=memory", `{}`},
		{"/console/sessions/s-1/end", "save=default-overwrite", "DELETE /v1/sessions/s-1?save_snapshot_mode=filesystem&save_as_default=true&default_conflict=overwrite", `{}`},
		{"/console/sessions/s-1/save", "label=a&default=1", `POST /v1/sessions/s-1/snapshots {"label":"a","save_as_default":true}`, `{}`},
		{"/console/sessions/s-1/pause", "", "POST /v1/sessions/s-1/pause", `{}`},
		{"/console/sessions/s-1/resume", "", "POST /v1/sessions/s-1/resume", `{}`},
		{"/console/sessions/s-1/message", "message=Go+on", `POST /v1/sessions/s-1/message {"message":"Go on"}`, `{}`},
		{"/console/user/check?user_id=a/b", "", "POST /v1/users/a%2Fb/default/check", `{"logged_in":true}`},
		{"/console/user/login?user_id=a", "start_url=a.example", `POST /v1/sessions {"idle_timeout_seconds":3600,"if_missing":"fresh","restore_default_environment_from_user_id":"a","start_url":"https://a.example","user_id":"a"}`, `{"session_id":"s-1","agent_url":"http://x/"}`},
		{"/console/user/login?user_id=a", "start_url=a.example&fresh=1", `POST /v1/sessions {"idle_timeout_seconds":3600,"start_url":"https://a.example","user_id":"a"}`, `{"session_id":"s-1","agent_url":"http://x/"}`},
		{"/console/user/default?user_id=a", "snapshot_id=snap-1&if_version=3", `PUT /v1/users/a/default {"if_version":3,"snapshot_id":"snap-1"}`, `{"version":4}`},
		{"/console/user/default/remove?user_id=a", "", "DELETE /v1/users/a/default", `{}`},
		{"/console/user/login-check?user_id=a", "url=", `PATCH /v1/users/a {"login_check":null}`, `{}`},
		{"/console/user/login-check?user_id=a", "url=https://a.example/&text=Hi&before_default=1&check_every_seconds=60", `PATCH /v1/users/a {"login_check":{"before_default":true,"check_every_seconds":60,"selector":null,"text":"Hi","url":"https://a.example/"}}`, `{}`},
		{"/console/snapshots/snap-1/verify", "", "POST /v1/snapshots/snap-1/verify", `{"ok":true}`},
		{"/console/snapshots/snap-1/delete", "", "DELETE /v1/snapshots/snap-1", `{}`},
		{"/console/extensions/ext/delete", "", "DELETE /v1/extensions/ext", `{}`},
		{"/console/keys/key-1/delete", "", "DELETE /v1/keys/key-1", `{}`},
		{"/console/webhooks/d-1/resend", "", "POST /v1/webhooks/deliveries/d-1/resend", `{}`},
	} {
		r := newRig(t)
		method, rest, _ := strings.Cut(x.call, " ")
		path, _, _ := strings.Cut(rest, " ")
		path, _, _ = strings.Cut(path, "?")
		r.answers[method+" "+path] = x.answer
		r.signIn(t)
		answer := r.do(t, "POST", x.path, x.form)
		if answer.StatusCode != http.StatusSeeOther || !slices.Equal(r.calls, []string{x.call}) {
			t.Errorf("%s %s: %d %q, want %q\n%s", x.path, x.form, answer.StatusCode, r.calls, x.call, answer.body)
		}
		r.answers[method+" "+path] = "422"
		if answer := r.do(t, "POST", x.path, x.form); answer.StatusCode != 422 || !strings.Contains(answer.body, "the field &lt;b&gt; is wrong") || !strings.Contains(answer.body, "some_code") || !strings.Contains(answer.body, "req-1") {
			t.Errorf("%s refused: %d %s", x.path, answer.StatusCode, answer.body)
		}
	}
}

// The secret of a new key is shown once. Uploads and downloads pass through.
func TestSecretsAndFiles(t *testing.T) {
	r := newRig(t)
	r.answers = hostileAnswers(t)
	r.answers["GET /v1/sessions/s-1/files/a%20b.txt"] = "content"
	r.answers["POST /v1/extensions"] = "{}"
	r.answers["GET /v1/snapshots/snap-1/state"] = "{}"
	r.signIn(t)
	if answer := r.do(t, "POST", "/console/keys", "name=ci&rights=use&rights=view"); !strings.Contains(answer.body, "the-new-secret") || r.calls[0] != `POST /v1/keys {"all_users":false,"name":"ci","rights":["use","view"]}` {
		t.Errorf("%q %s", r.calls, answer.body)
	}
	if strings.Contains(r.get(t, "/console/keys"), "the-new-secret") {
		t.Error("the secret is shown again")
	}
	if got := r.get(t, "/console/sessions/s-1/file?name=a+b.txt"); got != "content" {
		t.Errorf("file: %q", got)
	}
	if answer := r.do(t, "GET", "/console/snapshots/snap-1/state?format=netscape", ""); answer.body != "{}" || !strings.HasPrefix(answer.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("state: %v %q", answer.Header, answer.body)
	}
	if answer := r.do(t, "GET", "/console/sessions/s-1/file?name=missing", ""); answer.StatusCode != 404 || !strings.Contains(answer.Header.Get("Content-Type"), "text/html") {
		t.Errorf("missing file: %d %v", answer.StatusCode, answer.Header)
	}
	if answer := r.do(t, "POST", "/console/extensions", "bytes", "Content-Type: multipart/form-data; boundary=x"); answer.StatusCode != 303 || r.calls[len(r.calls)-1] != "POST /v1/extensions bytes" {
		t.Errorf("upload: %d %q", answer.StatusCode, r.calls)
	}
	if answer := r.do(t, "POST", "/console/daemon/prune", ""); !strings.Contains(answer.body, "would remove 2 snapshots") || r.calls[len(r.calls)-3] != `POST /v1/prune {"all":true,"dry_run":true}` {
		t.Errorf("prune: %q %s", r.calls, answer.body)
	}
}

// A comparison goes from the older snapshot to the newer one, and the history does not offer
// the snapshot that is the default.
func TestVersionsOfOneUser(t *testing.T) {
	r := newRig(t)
	snapshot := func(id, at string) string {
		return `{"id":"` + id + `","session_id":"s-1","user_id":"a","created_at":"2026-11-25T` + at + `:00.000Z"}`
	}
	r.answers["GET /v1/snapshots/snap-2"] = snapshot("snap-2", "11:02")
	r.answers["GET /v1/snapshots"] = `{"snapshots":[` + snapshot("snap-3", "11:03") + `,` + snapshot("snap-2", "11:02") + `,` + snapshot("snap-1", "11:01") + `]}`
	r.answers["GET /v1/users/a/default"] = `{"version":3,"snapshot_id":"snap-1","moved_at":"2026-11-25T11:05:00.000Z"}`
	r.answers["GET /v1/users/a/default/history"] = `{"history":[{"version":3,"snapshot_id":"snap-1","available":true},{"version":2,"snapshot_id":"snap-2","available":true},{"version":1,"snapshot_id":"snap-1","available":true}]}`
	r.answers["GET /v1/users/a"] = "{}"
	r.signIn(t)
	page := r.get(t, "/console/snapshots/snap-2")
	for _, want := range []string{`/snap-2/diff?with=snap-3">changes until then`, `/snap-1/diff?with=snap-2">changes since then`} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in %s", want, page)
		}
	}
	if page := r.get(t, "/console/user?user_id=a"); strings.Count(page, "Make it the default") != 1 || !strings.Contains(page, "same as the current one") {
		t.Error(page)
	}
}

// The list of sessions names what an ended session started from, and an import is not "nothing".
func TestStartedFrom(t *testing.T) {
	r := newRig(t)
	ended := func(id, more string) string {
		return `{"session_id":"` + id + `","status":"completed","user_id":"a","ended_at":"2026-11-25T11:00:00.000Z"` + more + `}`
	}
	r.answers["GET /v1/sessions"] = "[" + ended("s-1", "") + "," + ended("s-2", `,"reason":"imported"`) + "," + ended("s-3", `,"restored":{"path":"warm"}`) + "]"
	r.signIn(t)
	page := r.get(t, "/console/")
	for _, want := range []string{">an empty browser<", ">an import<", ">the import<", ">a snapshot, warm<"} {
		if strings.Count(page, want) != 1 {
			t.Errorf("%q is not once in %s", want, page)
		}
	}
}

// The list and the page of a live session show who is connected, and its memory once it is known.
func TestUsageIsShown(t *testing.T) {
	r := newRig(t)
	r.answers = hostileAnswers(t)
	r.signIn(t)
	for _, path := range []string{"/console/", "/console/sessions/s-1"} {
		page := r.get(t, path)
		for _, want := range []string{"1 client, no viewer", "100 MiB"} {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q", path, want)
			}
		}
	}
	r.answers["GET /v1/sessions/s-1"] = `{"session_id":"s-1","status":"ready","usage":{"clients":0,"viewers":2}}`
	if page := r.get(t, "/console/sessions/s-1"); !strings.Contains(page, "no client, 2 viewers") || strings.Contains(page, "Memory") {
		t.Error(page)
	}
}

// The list shows on which node a session lives, and names nodes that have not answered. Without an
// address there is no link to the live view.
func TestNodesAreShown(t *testing.T) {
	r := newRig(t)
	r.signIn(t)
	session := `{"session_id":"s-1","status":"ready","user_id":"a","node_id":"node-1","created_at":"2026-11-25T11:00:00Z"}`
	r.answers["GET /v1/sessions"], r.answers["GET /v1/sessions/s-1"], r.missing = "["+session+"]", session, "node-1, node-2"
	page := r.get(t, "/console/")
	for _, want := range []string{"Node node-1 has not answered", "Node node-2 has not answered", "· node node-1"} {
		if strings.Count(page, want) < 1 {
			t.Errorf("the list has no %q", want)
		}
	}
	if strings.Contains(page, `href=""`) || strings.Contains(page, ">Live view<") {
		t.Error("the list has a link to no live view")
	}
	if page := r.get(t, "/console/sessions/s-1"); !strings.Contains(page, "<dt>Node</dt><dd>node-1</dd>") {
		t.Error("the session has no node")
	}
}

// A time in the future is rounded, one in the past is not.
func TestRelativeTime(t *testing.T) {
	now := time.Now()
	for d, want := range map[time.Duration]string{
		6*time.Hour - time.Second: "in 6 h", 90 * 24 * time.Hour: "in 90 days", time.Hour - time.Millisecond: "in 60 min",
		-119 * time.Second: "119 s ago", -(6*time.Hour - time.Second): "5 h ago", time.Second: "now",
	} {
		at := now.Add(d)
		if got := relative(at, now); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

// A shell runs the shown command as it was meant, whatever a user's ID contains.
func TestCurlIsQuoted(t *testing.T) {
	c := restoreCall(`'; touch x; "$(id)` + "`\\")
	command := c.curl(url.URL{Scheme: "https", Host: "a.example", Path: "/base"})
	out, err := exec.Command("sh", "-c", `STASIS_API_KEY=k; curl() { printf '%s\n' "$@"; }; `+command).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "-H\nAuthorization: Bearer k\n--json\n" + c.body + "\nhttps://a.example/base/v1/sessions\n"
	if string(out) != want {
		t.Errorf("got %s want %s", out, want)
	}
	upload := call{method: http.MethodPost, path: "/v1/extensions", file: true}.curl(url.URL{Scheme: "http", Host: "a"})
	if upload != `curl -H "Authorization: Bearer $STASIS_API_KEY" -F file=@FILE 'http://a/v1/extensions'` {
		t.Error(upload)
	}
}
