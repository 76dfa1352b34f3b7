package console

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const goodKey = "key-of-alice"

// hostile is text that a page, a user or an agent may have chosen.
const hostile = `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`

// fakeAPI answers calls with the bodies in answers, by method and path without the query. It
// records the calls.
type fakeAPI struct {
	mu      sync.Mutex
	answers map[string]string // a body; "404" and other numbers are errors
	calls   []string
	key     string // the valid key
	missing string // the nodes that do not answer for their sessions
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	f.calls = append(f.calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	answer := f.answers[r.Method+" "+r.URL.EscapedPath()]
	if r.Header.Get("Authorization") != "Bearer "+f.key {
		answer = "401"
	} else if r.URL.Path == "/v1/me" {
		answer = `{"user_id":"alice","all_users":false,"rights":["use"]}`
	}
	w.Header().Set("Content-Type", "application/json")
	if f.missing != "" {
		w.Header().Set("X-Missing-Nodes", f.missing)
	}
	status := map[string]int{"": 404, "401": 401, "404": 404, "409": 409, "422": 422, "429": 429, "500": 500}[answer]
	if status != 0 {
		w.WriteHeader(status)
		answer = `{"code":"some_code","message":"` + "the field \\u003cb\\u003e is wrong" + `","request_id":"req-1"}`
	}
	_, _ = io.WriteString(w, answer)
}

// rig is a console over a fake API, and a browser.
type rig struct {
	*fakeAPI
	console *Console
	url     string
	browser *http.Client
	now     time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{fakeAPI: &fakeAPI{answers: map[string]string{}, key: goodKey}, now: time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)}
	r.console = New(Options{API: r.fakeAPI, Origin: func(r *http.Request) url.URL {
		scheme := "http"
		if r.Header.Get("X-Forwarded-Proto") != "" {
			scheme = r.Header.Get("X-Forwarded-Proto")
		}
		return url.URL{Scheme: scheme, Host: "stasis.example"}
	}, Now: func() time.Time { return r.now }})
	server := httptest.NewServer(r.console)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.url, r.browser = server.URL, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return r
}

// reply is an answer whose body was read.
type reply struct {
	*http.Response
	body string
}

// do sends a request as a browser's page of the console does; headers are "Name: value".
func (r *rig) do(t *testing.T, method, path, form string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Accept", "text/html")
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	answer, err := r.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer, string(data)}
}

// get returns a page, which must be there.
func (r *rig) get(t *testing.T, path string) string {
	t.Helper()
	answer := r.do(t, "GET", path, "")
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, answer.StatusCode, answer.body)
	}
	return answer.body
}

func (r *rig) signIn(t *testing.T) {
	t.Helper()
	if answer := r.do(t, "POST", "/console/sign-in", "key="+goodKey); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign in: %d %s", answer.StatusCode, answer.body)
	}
	r.calls = nil
}
