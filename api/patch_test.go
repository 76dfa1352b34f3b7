package api

import (
	"encoding/json"
	"strings"
	"testing"
)

// The examples of RFC 7396, appendix A, whose patch is an object.
func TestMergePatch(t *testing.T) {
	for _, x := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		parse := func(text string) any {
			v, err := parseJSON(t.Context(), []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if got, want := shown(mergePatch(parse(x.target), parse(x.patch).(object))), shown(parse(x.want)); got != want {
			t.Errorf("%s patched with %s: got %s, want %s", x.target, x.patch, got, want)
		}
	}
}

// shown formats a parsed value as JSON.
func shown(v any) string {
	plain := v
	if fields, ok := v.(object); ok {
		parts := []string{}
		for _, m := range fields {
			parts = append(parts, `"`+m.name+`":`+shown(m.value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	raw, _ := json.Marshal(plain)
	return string(raw)
}

// A merge patch changes a user's settings: absent fields stay, null removes, defaults are
// filled in, and the result is checked as a whole.
func TestPatchUser(t *testing.T) {
	r := newRig(t, nil)
	const path = "/v1/users/alice"
	const unused = `"use":{"bytes":{"used":0,"limit":null},"imports":{"used":0,"limit":null},"parked":{"used":0,"limit":null},"requests_per_second":{"used":0,"limit":null},"sessions":{"used":0,"limit":null},"snapshots":{"used":0,"limit":null},"sockets":{"used":0,"limit":null},"standbys":{"used":0,"limit":null}}}`
	const unset = `{"user_id":"alice","engine":null,"standby":null,"login_check":null,"retention":null,"egress":null,"quotas":null,"limits":null,` + unused
	for _, x := range []struct {
		body   string
		status int
		want   string
	}{
		{``, 200, unset},
		{`{"login_check":null}`, 200, unset},
		{`{"login_check":{"url":"https://a.example/x?<&>","selector":"#a > b"}}`, 200,
			`{"user_id":"alice","engine":null,"standby":null,"login_check":{"url":"https://a.example/x?<&>","status":null,"selector":"#a > b","absent_selector":null,"text":null,"cookie":null,"timeout_seconds":15,"before_default":false,"check_every_seconds":null},"retention":null,"egress":null,"quotas":null,"limits":null,` + unused},
		{`{"login_check":{"status":200,"timeout_seconds":5,"before_default":true}}`, 200,
			`{"user_id":"alice","engine":null,"standby":null,"login_check":{"url":"https://a.example/x?<&>","status":200,"selector":"#a > b","absent_selector":null,"text":null,"cookie":null,"timeout_seconds":5,"before_default":true,"check_every_seconds":null},"retention":null,"egress":null,"quotas":null,"limits":null,` + unused},
		{`{"login_check":{"selector":null,"timeout_seconds":null}}`, 200,
			`{"user_id":"alice","engine":null,"standby":null,"login_check":{"url":"https://a.example/x?<&>","status":200,"selector":null,"absent_selector":null,"text":null,"cookie":null,"timeout_seconds":15,"before_default":true,"check_every_seconds":null},"retention":null,"egress":null,"quotas":null,"limits":null,` + unused},
		{`{"login_check":{"status":null}}`, 422, `at least one of`},
		{`{"login_check":{"url":null}}`, 422, `login_check.url: is required`},
		{`{}`, 200, `"status":200`},
		{`{"engine":"shell"}`, 200, `"engine":"shell","standby":null,"login_check":{"url"`},
		{`{"standby":2}`, 200, `"standby":2`},
		{`{"standby":-1}`, 422, `standby: must be from 0 to 10`},
		{`{"standby":null}`, 200, `"standby":null`},
		{`{"engine":"gecko"}`, 422, `engine: must be one of chrome, shell`},
		{`{"engine":null}`, 200, `"engine":null,"standby":null,"login_check":{"url"`},
		{`{"retention":{"keep_last":3,"keep_labelled":true}}`, 200, `"retention":{"keep_last":3,"keep_within_seconds":null,"keep_labelled":true}`},
		{`{"retention":{"keep_last":null,"keep_labelled":false}}`, 422, `retention: keeps nothing`},
		{`{"retention":{"keep_last":null,"keep_within_seconds":60}}`, 200, `"retention":{"keep_last":null,"keep_within_seconds":60,"keep_labelled":true}`},
		{`{"quotas":{"sessions":3}}`, 403, `admin`},
		{`{"quotas":{"sessions":0}}`, 422, `quotas.sessions: must be from 1 to 1000000`},
		{`{"quotas":{"cookies":1}}`, 422, `cookies`},
		{`{"quotas":{"parked":-1}}`, 422, `quotas.parked: must be from 0 to 1000000`},
		{`{"quotas":{"requests_per_second":0}}`, 422, `quotas.requests_per_second: must be from 1`},
		{`{"limits":{"memory_bytes":1073741824}}`, 403, `admin`},
		{`{"limits":{"memory_bytes":1000}}`, 422, `limits.memory_bytes: must be at least 536870912`},
		{`{"limits":{"cpus":0}}`, 422, `limits.cpus: must be at least 0.1`},
		{`{"limits":{"tabs":1}}`, 422, `tabs`},
		{`{"egress":{"deny":["10.0.0.1","192.0.2.7/24"]}}`, 403, `admin`},
		{`{"egress":{"allow_private":["a.example"]}}`, 422, `egress.allow_private[0]: must be a network`},
		{`{"retention":null,"login_check":null,"quotas":null,"egress":null}`, 200, unset},
	} {
		answer, body := r.do(t, "PATCH", path, x.body)
		body = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(body)
		if answer.StatusCode != x.status || !strings.Contains(body, x.want) {
			t.Errorf("PATCH %s: got %d %s, want %s", x.body, answer.StatusCode, body, x.want)
		}
		if _, now := r.do(t, "GET", path, ""); x.status == 200 && strings.TrimSpace(now) != strings.TrimSpace(strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(body)) {
			t.Errorf("GET after it: %s", now)
		}
	}
	// The media type of RFC 7396 is accepted, others are not.
	if answer, body := r.do(t, "PATCH", path, `{}`, "Content-Type: application/merge-patch+json"); answer.StatusCode != 200 {
		t.Errorf("as a merge patch: %d %s", answer.StatusCode, body)
	}
	plain := r.client.Transport
	r.client.Transport = nil // the request is not as described
	if answer, body := r.do(t, "PATCH", path, `{}`, "Content-Type: text/plain"); answer.StatusCode != 400 {
		t.Errorf("as text: %d %s", answer.StatusCode, body)
	}
	r.client.Transport = plain
}
