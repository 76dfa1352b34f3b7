package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A shared link with control uses the files of the live view, and nothing else that a ticket
// opens. The ticket of agent_url does not drive CDP, and one to look opens no file.
func TestRoutesOfLiveTickets(t *testing.T) {
	r := newRig(t, nil)
	if err := os.WriteFile(filepath.Join(r.dir, "a.html"), []byte("<b>x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const one = "/v1/sessions/live-1"
	for _, x := range []struct {
		method, path   string
		opens, refuses []string
	}{
		{"GET", one + "/live", []string{viewTicket, controlTicket, sharedTicket}, []string{goodTicket}},
		{"GET", one + "/live/files", []string{controlTicket, sharedTicket}, []string{goodTicket, viewTicket}},
		{"GET", one + "/live/files/a.html", []string{controlTicket, sharedTicket}, []string{goodTicket, viewTicket}},
		{"POST", one + "/live/files?name=a", []string{controlTicket, sharedTicket}, []string{goodTicket, viewTicket}},
		{"POST", one + "/live/save", []string{controlTicket}, []string{goodTicket, viewTicket, sharedTicket}},
		{"GET", one + "/links", []string{controlTicket}, []string{goodTicket, viewTicket, sharedTicket}},
		{"POST", one + "/links", []string{controlTicket}, []string{goodTicket, viewTicket, sharedTicket}},
		{"DELETE", one + "/links/link-1", []string{controlTicket}, []string{goodTicket, viewTicket, sharedTicket}},
		{"GET", one + "/json/list", []string{goodTicket}, []string{viewTicket, controlTicket, sharedTicket}},
		{"GET", one + "/files", nil, []string{controlTicket, sharedTicket}},
		{"DELETE", one, nil, []string{controlTicket, sharedTicket}},
	} {
		do := func(ticket string) (int, string) {
			mark, file := "?", ""
			if strings.Contains(x.path, "?") {
				mark, file = "&", "data"
			}
			answer, body := r.do(t, x.method, x.path+mark+"ticket="+ticket, file, "Authorization: ", "Content-Type: application/octet-stream")
			return answer.StatusCode, body
		}
		for _, ticket := range x.opens {
			if status, body := do(ticket); status >= 300 {
				t.Errorf("%s %s with %s: %d %s", x.method, x.path, ticket, status, body)
			}
		}
		for _, ticket := range x.refuses {
			if status, body := do(ticket); status != 401 {
				t.Errorf("%s %s with %s: %d %s", x.method, x.path, ticket, status, body)
			}
		}
	}
	if strings.Contains(r.log.String(), controlTicket) || strings.Contains(r.log.String(), sharedTicket) {
		t.Error("the log has a ticket")
	}
}

// Files of the live view have the same checks as those of the API: no page of this host, no
// other names, a limited size. An upload answers with the name that the file got.
func TestLiveFiles(t *testing.T) {
	r := newRig(t, nil)
	if err := os.WriteFile(filepath.Join(r.dir, "a.html"), []byte("<script>x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const files = "/v1/sessions/live-1/live/files"
	answer, body := r.do(t, "GET", files+"/a.html?ticket="+sharedTicket, "", "Authorization: ")
	if answer.StatusCode != 200 || body != "<script>x" || answer.Header.Get("Content-Type") != "application/octet-stream" || answer.Header.Get("Content-Disposition") != "attachment; filename=a.html" || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v %s", answer.StatusCode, answer.Header, body)
	}
	for _, x := range []struct {
		query, body string
		status      int
		want        string
	}{
		{"?name=cv.pdf", "data", 201, `{"name":"cv.pdf (1)","size_bytes":4}`},
		{"?name=..%2Fcv.pdf", "data", 422, "name: must be one path element"},
		{"?size=1", "data", 422, "size"},
		{"?name=large", strings.Repeat("x", 2<<10), 413, "too_large"},
	} {
		answer, body := r.do(t, "POST", files+x.query+"&ticket="+sharedTicket, x.body, "Authorization: ", "Content-Type: application/octet-stream")
		if answer.StatusCode != x.status || !strings.Contains(body, x.want) {
			t.Errorf("%s: %d %s", x.query, answer.StatusCode, body)
		}
	}
}

// The bounds of a link are checked before it is made, and its address is that of the live view.
func TestMakeLink(t *testing.T) {
	r := newRig(t, nil)
	for body, want := range map[string]string{
		``: `{"link_id":"link-1","control":false,"expires_at":"2026-11-20T19:00:00.000Z","url":"` + r.url + `/v1/sessions/live-1/live?ticket=shared-ticket"}`,
		`{"control":true,"expires_in_seconds":604800}`: `"control":true,"expires_at":"2026-11-27T18:00:00.000Z"`,
		`{"expires_in_seconds":59}`:                    "expires_in_seconds: must be from 60 to 604800",
		`{"expires_in_seconds":604801}`:                "expires_in_seconds: must be from 60 to 604800",
		`{"controll":true}`:                            "controll",
		`{"control":"yes"}`:                            "control: must be",
	} {
		if _, got := r.do(t, "POST", "/v1/sessions/live-1/links", body); !strings.Contains(got, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// A save in the live view ends the session as a delete does, and answers with the user's login
// check if the default moved.
func TestLiveSave(t *testing.T) {
	r := newRig(t, nil)
	answer, body := r.do(t, "POST", "/v1/sessions/live-1/live/save?ticket="+controlTicket, "", "Authorization: ")
	if answer.StatusCode != 200 || !strings.Contains(body, `"login_check":{"logged_in":false`) || !strings.Contains(body, `"sites":[`) || !strings.Contains(body, `"moved":true,"version":2`) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	answer, body = r.do(t, "POST", "/v1/sessions/ended-1/live/save?default_conflict=overwrite", "")
	if answer.StatusCode != 409 || !strings.Contains(body, `"code":"version_conflict"`) || !strings.Contains(body, `"login_check":null`) || !strings.Contains(body, `"request_id":"`) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	for i, conflict := range []string{"keep", "overwrite"} {
		if e := r.ends[i]; e.Mode != "filesystem" || !e.SaveAsDefault || string(e.Conflict) != conflict || !e.Origins.All() {
			t.Errorf("%+v", e)
		}
	}
	if answer, body := r.do(t, "POST", "/v1/sessions/live-1/live/save?default_conflict=ask", ""); answer.StatusCode != 422 || !strings.Contains(body, "default_conflict: must be one of keep, overwrite") {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}
