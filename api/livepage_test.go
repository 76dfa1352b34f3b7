package api

import (
	"strings"
	"testing"
)

// A browser that reloads the live view of an ended session gets a page that says so. Programs
// get JSON.
func TestEndedLiveViewIsAPage(t *testing.T) {
	r := newRig(t, nil)
	const accept = "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
	for path, want := range map[string]string{
		"/v1/sessions/live-1/live?ticket=of-a-session-that-has-ended": "<p id=\"note\" role=\"status\">The session has ended, or this link is no longer valid.</p>",
		"/v1/sessions/live-1/live?tiket=" + viewTicket:                "<p id=\"note\" role=\"status\">The session has ended, or this link is no longer valid.</p>",
		"/v1/sessions/live-1/live?ticket=" + viewTicket + "&size=2":   "There is no live view: unknown parameter &#34;size&#34;",
	} {
		answer, body := r.do(t, "GET", path, "", accept, "Authorization: ")
		if answer.StatusCode < 400 || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") || !strings.Contains(body, want) || answer.Header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %d %v %s", path, answer.StatusCode, answer.Header, body)
		}
		answer, body = r.do(t, "GET", path, "", "Authorization: ")
		if answer.StatusCode < 400 || answer.Header.Get("Content-Type") != "application/json" || !strings.HasPrefix(body, `{"code":`) {
			t.Errorf("%s: %d %v %s", path, answer.StatusCode, answer.Header, body)
		}
	}
	if answer, body := r.do(t, "GET", "/v1/sessions/live-1/status", "", accept, "Authorization: "); answer.StatusCode != 401 || !strings.HasPrefix(body, `{"code":`) {
		t.Errorf("another route: %d %s", answer.StatusCode, body)
	}
}
