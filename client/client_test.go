package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stasisd/stasis/client"
)

// fakeDaemon answers calls by "METHOD path?query", and records them.
func fakeDaemon(t *testing.T, answers map[string]string) (*client.Client, *[]string) {
	t.Helper()
	var calls []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := r.Method + " " + r.URL.RequestURI()
		calls = append(calls, call)
		answer, known := answers[call]
		switch {
		case r.Header.Get("Authorization") != "Bearer key":
			w.WriteHeader(http.StatusUnauthorized)
		case !known:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"code":"not_found","message":"no such route","request_id":"r-1"}`)
		case strings.HasPrefix(answer, "next="):
			next, body, _ := strings.Cut(strings.TrimPrefix(answer, "next="), " ")
			w.Header().Set("X-Next-Token", next)
			_, _ = fmt.Fprint(w, body)
		default:
			_, _ = fmt.Fprint(w, answer)
		}
	}))
	t.Cleanup(server.Close)
	return client.New(server.URL+"/", "key"), &calls
}

func TestPages(t *testing.T) {
	c, calls := fakeDaemon(t, map[string]string{
		"GET /v1/sessions?limit=1000&user_id=a":               `next=2 [{"session_id":"s1"},{"session_id":"s2"}]`,
		"GET /v1/sessions?limit=1000&start_after=2&user_id=a": `[{"session_id":"s3"}]`,
		"GET /v1/snapshots?limit=1000":                        `{"snapshots":[{"id":"x"}],"next_token":"x"}`,
	})
	var ids []string
	for s, err := range c.Sessions(t.Context(), client.ListSessions{UserID: "a"}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.ID)
	}
	if fmt.Sprint(ids) != "[s1 s2 s3]" {
		t.Errorf("sessions %s", ids)
	}
	for _, err := range c.Sessions(t.Context(), client.ListSessions{UserID: "a"}) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if len(*calls) != 3 {
		t.Errorf("a list that is not read to its end makes %d calls", len(*calls)-2)
	}
	var found []string
	var failed error
	for s, err := range c.Snapshots(t.Context(), "") {
		if failed = err; err == nil {
			found = append(found, s.ID)
		}
	}
	var refused *client.Error
	if fmt.Sprint(found) != "[x]" || !errors.As(failed, &refused) || refused.Code != "not_found" {
		t.Errorf("snapshots %s, %v", found, failed)
	}
}

func TestMe(t *testing.T) {
	c, _ := fakeDaemon(t, map[string]string{"GET /v1/me": `{"key_id":"k-1","user_id":"ada","all_users":true,"rights":["use"]}`})
	if k, err := c.Me(t.Context()); err != nil || k.ID != "k-1" || k.UserID != "ada" || !k.AllUsers || len(k.Rights) != 1 {
		t.Errorf("the client's key: %+v, %v", k, err)
	}
}

func TestErrors(t *testing.T) {
	c, _ := fakeDaemon(t, map[string]string{"GET /v1/sessions/odd": "<html>"})
	_, err := c.Session(t.Context(), "a/b")
	var refused *client.Error
	if !errors.As(err, &refused) || *refused != (client.Error{Status: 404, Code: "not_found", Message: "no such route", RequestID: "r-1"}) {
		t.Errorf("a refusal: %#v", err)
	}
	if _, err := c.Session(t.Context(), "odd"); err == nil || !strings.Contains(err.Error(), "GET /v1/sessions/odd: the answer is not the expected JSON") {
		t.Errorf("an answer that is not JSON: %v", err)
	}
	c.Key = "wrong"
	if _, err := c.Session(t.Context(), "s"); !errors.As(err, &refused) || refused.Status != 401 || refused.Code != "" || err.Error() != "the daemon answered 401 Unauthorized" {
		t.Errorf("an answer of something else: %#v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Session(ctx, "s"); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context has ended: %v", err)
	}
}

// The queries are those of openapi.yaml; e2e makes them to a real daemon.
func TestQueries(t *testing.T) {
	c, calls := fakeDaemon(t, map[string]string{})
	_, _ = c.EndSession(t.Context(), "s", client.EndOptions{})
	_, _ = c.EndSession(t.Context(), "s", client.EndOptions{Mode: "filesystem", SaveAsDefault: true, Conflict: "overwrite", Origins: client.Selection{Include: []string{"a.example", "b.example"}}})
	_ = c.Export(t.Context(), "x", nil)
	_ = c.Export(t.Context(), "x", nil, "age1a", "age1b")
	want := []string{
		"DELETE /v1/sessions/s",
		"DELETE /v1/sessions/s?default_conflict=overwrite&origins_include=a.example&origins_include=b.example&save_as_default=true&save_snapshot_mode=filesystem",
		"GET /v1/snapshots/x/archive?sealed=true",
		"GET /v1/snapshots/x/archive?recipient=age1a&recipient=age1b",
	}
	if got := strings.Join(*calls, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("calls\n%s", got)
	}
}
