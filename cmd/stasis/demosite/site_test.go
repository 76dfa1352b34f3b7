package demosite_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The login is proved by a session cookie, for as long as the server has its record.
func TestLogin(t *testing.T) {
	site, client := start(t)
	if status, body := get(t, client, site.URL+"/me"); status != http.StatusUnauthorized || strings.Contains(body, demosite.User) {
		t.Errorf("without a login: %d %s", status, body)
	}
	if status, _ := post(t, client, site.URL+"/login", url.Values{"user": {demosite.User}, "password": {"guess"}}); status != http.StatusForbidden {
		t.Errorf("a wrong password: %d", status)
	}
	login := url.Values{"user": {demosite.User}, "password": {demosite.Password}}
	if status, body := post(t, client, site.URL+"/login", login); status != http.StatusOK || !strings.Contains(body, "<title>me: "+demosite.User) {
		t.Errorf("login: %d %s", status, body)
	}
	if status, _ := get(t, client, site.Other+"/me"); status != http.StatusUnauthorized {
		t.Errorf("the other origin accepts the login: %d", status)
	}
	if status, _ := post(t, client, site.URL+"/logout", nil); status != http.StatusUnauthorized {
		t.Errorf("after logout: %d", status)
	}
}

// A page contains its value and the cookies of its request as script literals, from which a
// hostile value cannot break out.
func TestPages(t *testing.T) {
	var paths []string
	site, client := startWith(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			paths = append(paths, r.Method+" "+r.URL.Path)
			next.ServeHTTP(w, r)
		})
	})
	if _, body := get(t, client, site.URL+"/set?v=one&frame=1"); !strings.Contains(body, `value = "one"`) || !strings.Contains(body, `localhost`) {
		t.Errorf("set: %s", body)
	}
	if _, body := get(t, client, site.URL+"/check"); !strings.Contains(body, `"httponly":"one"`) || !strings.Contains(body, `frame = ""`) {
		t.Errorf("check: %s", body)
	}
	if _, body := get(t, client, site.URL+"/set?v="+url.QueryEscape("</script><b>")); strings.Contains(body, "</script><b>") {
		t.Errorf("the value leaves its literal: %s", body)
	}
	if diff := cmp.Diff([]string{"GET /set", "GET /check", "GET /set"}, paths); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The kinds in Go are those that the page reports.
func TestKinds(t *testing.T) {
	script, err := os.ReadFile("pages/kinds.js")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(script), "const kinds = {")
	var inPage []string
	for _, m := range regexp.MustCompile(`(?m)^  (\w+): \{`).FindAllStringSubmatch(table, -1) {
		inPage = append(inPage, m[1])
	}
	want := demosite.Kinds()
	slices.Sort(want)
	slices.Sort(inPage)
	if diff := cmp.Diff(want, inPage); diff != "" {
		t.Errorf("kinds (-Go +page):\n%s", diff)
	}
}

func TestCloseTwice(t *testing.T) {
	site, err := demosite.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	}
	if resp, err := http.Get(site.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("it still answers")
	}
}

func start(t *testing.T) (*demosite.Site, *http.Client) {
	t.Helper()
	return startWith(t, nil)
}

func startWith(t *testing.T, wrap func(http.Handler) http.Handler) (*demosite.Site, *http.Client) {
	t.Helper()
	site, err := demosite.Start(wrap)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	return site, &http.Client{Jar: jar, Transport: transport}
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

func post(t *testing.T, client *http.Client, url string, form url.Values) (int, string) {
	t.Helper()
	resp, err := client.PostForm(url, form)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, resp)
}

func read(t *testing.T, resp *http.Response) (int, string) {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
