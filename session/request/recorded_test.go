package request

import (
	"encoding/json"
	"net/netip"
	"os"
	"reflect"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
	"github.com/stasisd/stasis/state"
)

// everyOption returns a create with every field set.
func everyOption() Create {
	yes := true
	return Create{
		SessionID: "s-1", UserID: "alice", AgentName: "bot", Goal: "buy milk", StartURL: "https://start.example/", Engine: "shell",
		FromSession: "s-0", FromEnvironment: "e-0", FromDefaultOf: "bob",
		AllowMemory: true, FreshIfNone: true, RestoreTabs: true, ReadOnly: true, Persist: true,
		AutoSave: &autosave.Settings{Interval: 90 * time.Second, Navigation: true, Login: true, Disconnect: true, Keep: 3},
		Restart:  true, OnLive: OnLiveWait, Resume: true, Idle: 7 * time.Minute, Lifetime: 3 * time.Hour,
		WebhookURL: "https://hooks.example/a", DiscardOnEnd: true, Wait: 1500 * time.Millisecond,
		Labels: map[string]string{"team": "blue"}, Record: []string{"screenshot", "console"},
		Overrides: state.Overrides{
			Viewport: &state.Viewport{Width: 800, Height: 600, DeviceScaleFactor: 1.5, Mobile: true}, UserAgent: "Mine",
			Locale: "de-DE", Timezone: "Europe/Berlin", Geolocation: &state.Geolocation{Latitude: 1.5, Longitude: 2.5, Accuracy: 3},
			ExtraHeaders: map[string]string{"X-Team": "blue"},
			Proxy:        &state.Proxy{Server: "http://proxy.example:1", Username: "me", Password: "hunter2", Bypass: "a.example"},
			PermissionPolicy: &state.PermissionPolicy{Default: state.DecisionDeny,
				Rules: []state.PermissionRule{{Permission: "camera", Origin: "https://a.example", Decision: state.DecisionAllow}}},
		},
		Passkeys: &yes, Origins: state.Selection{Include: []string{"a.example"}, Exclude: []string{"b.a.example"}},
		Extensions: []string{"abcdefghijklmnopabcdefghijklmnop"}, Egress: egress.List{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Deny: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}, Limits: browser.Limits{Memory: 1 << 30, CPUs: 1.5, Processes: 500, Disk: 1 << 31}, SharedContexts: true, SharedWrites: true, RequestHash: "hash",
	}
}

// sameCreate compares the recorded fields of creates.
var sameCreate = cmp.Options{cmpopts.IgnoreUnexported(Create{}), cmpopts.EquateComparable(netip.Prefix{})}

// readGolden returns what a version of Stasis has recorded.
func readGolden(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/asked/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// resumedWith returns a create as a resume changes it: it starts from the session itself.
func resumedWith(r Create) Create {
	r.FromSession, r.FromEnvironment, r.FromDefaultOf, r.StartURL = r.SessionID, "", "", ""
	return r
}

func TestEveryOptionIsSet(t *testing.T) {
	every := reflect.ValueOf(everyOption())
	for i := range every.NumField() {
		if f := every.Type().Field(i); f.IsExported() && every.Field(i).IsZero() {
			t.Errorf("%s is not set", f.Name)
		}
	}
}

// recordedFrom returns FromRecord for a session whose record has these sealed options.
func recordedFrom(t *testing.T, asked []byte) (Create, error) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	vault := snapshot.NewVault(memstore.New(0, time.Now), snapshot.NewKeys(identity, [32]byte{1}), snapshot.Options{Now: time.Now})
	sealed, err := vault.Seal(asked)
	if err != nil {
		t.Fatal(err)
	}
	return FromRecord(vault, profiles.Session{ID: "s-1", UserID: "alice", Engine: "shell", RequestHash: "hash", SealedRequest: sealed})
}

// Records from before versions, with the names of Go's fields, can be read.
func TestDecodeGoNames(t *testing.T) {
	got, err := recordedFrom(t, readGolden(t, "go-names.json"))
	want := everyOption()
	want.SharedContexts, want.SharedWrites, want.Egress, want.Limits = false, false, egress.List{}, browser.Limits{} // these records are older
	if diff := cmp.Diff(resumedWith(want), got, sameCreate); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// An empty create had null for options without a value.
	none, err := Decode([]byte(`{"SessionID":"","AutoSave":null,"Labels":null,"Passkeys":null,"Origins":{},"Idle":0}`))
	if diff := cmp.Diff(Create{}, none, sameCreate); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Version 1 is written, and stays readable.
func TestDecodeVersion1(t *testing.T) {
	golden := readGolden(t, "v1.json")
	var want, got any
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(Encode(everyOption()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written (-golden +now):\n%s", diff)
	}
	read, err := recordedFrom(t, golden)
	if diff := cmp.Diff(resumedWith(everyOption()), read, sameCreate); err != nil || diff != "" {
		t.Errorf("read: %v (-want +got):\n%s", err, diff)
	}
}
