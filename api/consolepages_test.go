package api

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// The console goes through the API: its keys, its limit of wrong keys, its log. Programs that
// ask for / get the answer that they always got.
func TestConsole(t *testing.T) {
	r := newRig(t, nil)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	do := func(method, path, accept string, form url.Values) (int, string) {
		t.Helper()
		r := &rig{url: r.url, client: browser}
		answer, body := r.do(t, method, path, form.Encode(), "Authorization: ", "Accept: "+accept, "Content-Type: application/x-www-form-urlencoded")
		return answer.StatusCode, body
	}
	for _, method := range []string{"GET", "POST", "DELETE"} {
		if status, body := do(method, "/", "*/*", nil); status != 404 || !strings.Contains(body, `{"code":"not_found"`) {
			t.Errorf("%s /: %d %s", method, status, body)
		}
	}
	if status, body := do("GET", "/", "text/html", nil); status != 401 || !strings.Contains(body, "API key") {
		t.Errorf("a browser: %d %s", status, body)
	}
	if status, body := do("POST", "/console/sign-in", "text/html", url.Values{"key": {goodKey}}); status != 200 || !strings.Contains(body, "live-1") {
		t.Errorf("sign in: %d %s", status, body)
	}
	if status, body := do("GET", "/console/sessions/live-1", "text/html", nil); status != 200 || !strings.Contains(body, "/v1/sessions/live-1/live?ticket=") {
		t.Errorf("a session: %d %s", status, body)
	}
	for range attemptsBurst {
		if status, _ := do("POST", "/console/sign-in", "text/html", url.Values{"key": {"wrong"}}); status != 401 {
			t.Fatalf("a wrong key: %d", status)
		}
	}
	if status, body := do("POST", "/console/sign-in", "text/html", url.Values{"key": {"wrong"}}); status != 429 || !strings.Contains(body, "Too many wrong keys") {
		t.Errorf("the %dth wrong key: %d %s", attemptsBurst+1, status, body)
	}
	if log := r.log.String(); !strings.Contains(log, "route=/console/ ") || strings.Contains(log, goodKey) {
		t.Errorf("log: %s", log)
	}
}
