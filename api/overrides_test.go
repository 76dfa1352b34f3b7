package api

import (
	"reflect"
	"testing"

	"github.com/stasisd/stasis/state"
)

const everyOverride = `{
	"viewport": {"width": 400, "height": 700, "mobile": true},
	"user_agent": "mine/1", "locale": "zh-Hans-CN", "timezone": "America/Argentina/Buenos_Aires",
	"geolocation": {"latitude": -90, "longitude": 2.5},
	"extra_headers": {"X-A": "b", "DNT": ""},
	"proxy": {"server": "socks5://[::1]:1080", "username": "ada", "password": "p:w", "bypass": "*.a.example,<-loopback>"},
	"permission_policy": {"rules": [{"permission": "camera", "origin": "https://a.example:8443", "decision": "allow"}]}
}`

func TestOverridesReachTheService(t *testing.T) {
	r := newRig(t, nil)
	if answer, body := r.do(t, "POST", "/v1/sessions", everyOverride); answer.StatusCode != 201 {
		t.Fatal(body)
	}
	want := state.Overrides{
		Viewport:  &state.Viewport{Width: 400, Height: 700, Mobile: true},
		UserAgent: "mine/1", Locale: "zh-Hans-CN", Timezone: "America/Argentina/Buenos_Aires",
		Geolocation:  &state.Geolocation{Latitude: -90, Longitude: 2.5, Accuracy: 1},
		ExtraHeaders: map[string]string{"X-A": "b", "DNT": ""},
		Proxy:        &state.Proxy{Server: "socks5://[::1]:1080", Username: "ada", Password: "p:w", Bypass: "*.a.example,<-loopback>"},
		PermissionPolicy: &state.PermissionPolicy{Default: state.DecisionDeny, Rules: []state.PermissionRule{
			{Permission: "camera", Origin: "https://a.example:8443", Decision: state.DecisionAllow}}},
	}
	if got := r.creates[0].Overrides; !reflect.DeepEqual(got, want) {
		t.Errorf("the service got %+v", got)
	}
	if answer, body := r.do(t, "POST", "/v1/sessions", `{"extra_headers": {}, "proxy": {"server": "direct://"}}`); answer.StatusCode != 201 {
		t.Fatal(body)
	}
	if got := r.creates[1].Overrides; got.ExtraHeaders == nil || got.Proxy.Server != state.ProxyDirect {
		t.Errorf("no overrides were given, and the service got %+v", got)
	}
}
