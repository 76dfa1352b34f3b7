package api

import (
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

// Answers say what is left of a quota of requests, and a refusal says of which.
func TestRateLimitHeaders(t *testing.T) {
	r := newRig(t, nil)
	if answer, _ := r.do(t, "GET", "/v1/me", ""); answer.Header.Get("RateLimit") != "" || answer.Header.Get("RateLimit-Policy") != "" {
		t.Errorf("without a quota: %v", answer.Header)
	}
	r.rates = []quota.Rate{{Kind: quota.User, Limit: 100, Left: 99, Reset: 10 * time.Millisecond}, {Kind: quota.Key, Limit: 10, Reset: time.Second}}
	check := func(status int, path, retry string) string {
		t.Helper()
		answer, body := r.do(t, "GET", path, "")
		h := answer.Header
		if answer.StatusCode != status || h.Get("RateLimit-Policy") != `"user";q=100;w=1, "key";q=10;w=1` || h.Get("RateLimit") != `"user";r=99;t=1, "key";r=0;t=1` || h.Get("Retry-After") != retry {
			t.Errorf("%s: %d %v %s", path, answer.StatusCode, h, body)
		}
		return body
	}
	check(200, "/v1/me", "")
	most := int64(10)
	r.overRate = quota.Limit{Share: quota.Share{Holder: quota.Holder{Kind: quota.Key, ID: "key-1"}, Name: quota.Requests}, Most: &most}.Error("test", 10)
	if body := check(429, "/v1/me", "1"); !strings.Contains(body, `"quota":{"name":"requests_per_second","limit":10,"of":"key","id":"key-1"}`) {
		t.Errorf("refused with %s", body)
	}
	// The audit log counts such refusals. Whose data the call is about is not looked up.
	r.audit.taken()
	r.audit.lookedUp = 0
	if answer, _ := r.do(t, "DELETE", "/v1/sessions/live-1", ""); answer.StatusCode != 429 {
		t.Errorf("a DELETE: %d", answer.StatusCode)
	}
	acts := r.audit.taken()
	if len(acts) != 1 || acts[0].Call != "deleteSession" || !acts[0].Refused || fault.CodeOf(acts[0].Err) != fault.QuotaExceeded || acts[0].Repeats == nil || !strings.HasPrefix(acts[0].Repeats.In, "refused key ") {
		t.Errorf("the audit log has %+v", acts)
	}
	if r.audit.lookedUp != 0 || len(r.ends) != 0 {
		t.Errorf("%d users were looked up, %d sessions ended", r.audit.lookedUp, len(r.ends))
	}
	for call, want := range map[string]bool{"GET /v1/keys": true, "DELETE /v1/keys/key-2": true, "GET /v1/users/bob": true, "GET /v1/users/bob/default": true,
		"POST /v1/users/bob/default/check": false,
		"GET /v1/me":                       false, "GET /v1/sessions": false} {
		method, path, _ := strings.Cut(call, " ")
		r.managing.Store(!want)
		if r.do(t, method, path, ""); r.managing.Load() != want {
			t.Errorf("%s is about keys or users: %t", call, !want)
		}
	}
	if answer, _ := r.do(t, "GET", "/healthz", ""); answer.StatusCode != 200 {
		t.Errorf("a call without a key: %d", answer.StatusCode)
	}
}
