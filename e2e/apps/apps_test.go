package apps_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/apps/webapp"
)

// DokuWiki refuses a visitor without a login. Its form lets the account in and sets only
// session cookies.
func TestDokuWiki(t *testing.T) {
	app := apps.Start(t, webapp.StartDokuWiki)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var persistent []string
	client := &http.Client{Jar: jar, Transport: cookieSpy(func(c *http.Cookie) {
		if c.Value != "deleted" && (c.MaxAge > 0 || !c.Expires.IsZero()) {
			persistent = append(persistent, c.Name)
		}
	})}
	if body := get(t, client, app.URL+"/doku.php?id=start", ""); strings.Contains(body, "Members only") {
		t.Fatalf("the page is readable without a login:\n%s", body)
	}

	before := app.Log.Len()
	resp, err := client.PostForm(app.URL+"/doku.php", url.Values{
		"id": {"start"}, "do": {"login"}, "u": {app.User}, "p": {app.Password},
		"sectok": {sectok(t, get(t, client, app.URL+"/doku.php?id=start&do=login", ""))},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	body := get(t, client, app.URL+"/doku.php?id=start", "")
	if !strings.Contains(body, "Members only") || !strings.Contains(body, "Ada Lovelace") {
		t.Errorf("not logged in:\n%s", body)
	}
	if len(persistent) > 0 {
		t.Errorf("persistent cookies: %v", persistent)
	}
	if reqs := app.Log.Since(before); len(reqs) < 3 || reqs[1].Method != http.MethodPost || reqs[1].Path != "/doku.php" {
		t.Errorf("log: %+v", reqs)
	}
}

// The settings need a token, and accept the one that the login returns.
func TestNodeRED(t *testing.T) {
	app := apps.Start(t, webapp.StartNodeRED)
	resp, err := http.Get(app.URL + "/settings")
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: status %s", resp.Status)
	}

	resp, err = http.PostForm(app.URL+"/auth/token", url.Values{
		"client_id": {"node-red-editor"}, "grant_type": {"password"}, "scope": {""},
		"username": {app.User}, "password": {app.Password},
	})
	if err != nil {
		t.Fatal(err)
	}
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&token); err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	body := get(t, http.DefaultClient, app.URL+"/settings", token.AccessToken)
	if !strings.Contains(body, `"username":"`+app.User+`"`) {
		t.Errorf("settings: %s", body)
	}
}

// phpLiteAdmin refuses a visitor without a login. "Remember me" sets persistent cookies
// that are enough without PHP's session.
func TestPHPLiteAdmin(t *testing.T) {
	app := apps.Start(t, webapp.StartPHPLiteAdmin)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var persistent []*http.Cookie
	client := &http.Client{Jar: jar, Transport: cookieSpy(func(c *http.Cookie) {
		if !c.Expires.IsZero() {
			persistent = append(persistent, c)
		}
	})}
	page := get(t, client, app.URL+"/", "")
	if strings.Contains(page, "members") {
		t.Fatalf("the page is readable without a login:\n%s", page)
	}
	_, rest, _ := strings.Cut(page, `name="token" value="`)
	token, _, _ := strings.Cut(rest, `"`)
	resp, err := client.PostForm(app.URL+"/", url.Values{"token": {token}, "password": {app.Password}, "remember": {"yes"}, "login": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(app.URL)
	if err != nil {
		t.Fatal(err)
	}
	again.SetCookies(at, persistent)
	if page := get(t, &http.Client{Jar: again}, app.URL+"/", ""); !strings.Contains(page, "members") {
		t.Errorf("not logged in with %v:\n%s", persistent, page)
	}
}

// cookieSpy receives every cookie that a server sets.
type cookieSpy func(*http.Cookie)

func (spy cookieSpy) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		for _, c := range resp.Cookies() {
			spy(c)
		}
	}
	return resp, err
}

// sectok finds DokuWiki's form token in a page.
func sectok(t *testing.T, page string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `name="sectok" value="`)
	value, _, closed := strings.Cut(rest, `"`)
	if !found || !closed {
		t.Fatalf("no form token in:\n%s", page)
	}
	return value
}

func get(t *testing.T, client *http.Client, url, token string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(body)
}
