package session

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

// everyOption is a create with every field set.
func everyOption() Create {
	yes := true
	return Create{
		SessionID: "s-1", UserID: "alice", AgentName: "bot", Goal: "buy milk", StartURL: "https://start.example/", Engine: "shell",
		FromSession: "s-0", FromEnvironment: "e-0", FromDefaultOf: "bob",
		AllowMemory: true, FreshIfNone: true, RestoreTabs: true, ReadOnly: true, Persist: true,
		AutoSave: &AutoSave{Interval: 90 * time.Second, Navigation: true, Login: true, Disconnect: true, Keep: 3},
		Restart:  true, OnLive: OnLiveWait, Resume: true, Options: true, Idle: 7 * time.Minute, Lifetime: 3 * time.Hour,
		WebhookURL: "https://hooks.example/a", DiscardOnEnd: true, Wait: 1500 * time.Millisecond,
		Labels: map[string]string{"team": "blue"}, Record: []string{RecordScreenshot, RecordConsole},
		Overrides: state.Overrides{
			Viewport: &state.Viewport{Width: 800, Height: 600, DeviceScaleFactor: 1.5, Mobile: true}, UserAgent: "Mine",
			Locale: "de-DE", Timezone: "Europe/Berlin", Geolocation: &state.Geolocation{Latitude: 1.5, Longitude: 2.5, Accuracy: 3},
			ExtraHeaders: map[string]string{"X-Team": "blue"},
			Proxy:        &state.Proxy{Server: "http://proxy.example:1", Username: "me", Password: "hunter2", Bypass: "a.example"},
			PermissionPolicy: &state.PermissionPolicy{Default: state.DecisionDeny,
				Rules: []state.PermissionRule{{Permission: "camera", Origin: "https://a.example", Decision: state.DecisionAllow}}},
		},
		Passkeys: &yes, Origins: state.Selection{Include: []string{"a.example"}, Exclude: []string{"b.a.example"}},
		Extensions: []string{"abcdefghijklmnopabcdefghijklmnop"}, RequestHash: "hash",
	}
}

// sameCreate compares what is recorded of a create.
var sameCreate = cmpopts.IgnoreUnexported(Create{})

func TestEveryOptionIsSet(t *testing.T) {
	every := reflect.ValueOf(everyOption())
	for i := range every.NumField() {
		if f := every.Type().Field(i); f.IsExported() && every.Field(i).IsZero() {
			t.Errorf("%s is not set", f.Name)
		}
	}
}

// madeOf is what a session was made with whose record has this, sealed.
func (r *rig) madeOf(asked []byte) (Create, error) {
	r.t.Helper()
	sealed, err := r.Vault.Seal(asked)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.made(profiles.Session{ID: "s-1", UserID: "alice", Engine: "shell", RequestHash: "hash", Asked: sealed})
}

// What the first version of Stasis recorded, by the names of Go's fields, is read. What a
// resume goes on from is the session itself.
func TestAskedByGoNames(t *testing.T) {
	raw, err := os.ReadFile("testdata/asked/go-names.json")
	if err != nil {
		t.Fatal(err)
	}
	want := everyOption()
	want.FromSession, want.FromEnvironment, want.FromDefaultOf, want.StartURL = want.SessionID, "", "", ""
	got, err := newRig(t, nil).madeOf(raw)
	if diff := cmp.Diff(want, got, sameCreate); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
