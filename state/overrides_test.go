package state

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stasisd/stasis/state/report"
)

func TestSavedOverridesApplyFieldByField(t *testing.T) {
	saved := Overrides{UserAgent: "old", Locale: "de-DE", ExtraHeaders: map[string]string{"A": "1"}, Proxy: &Proxy{Server: "http://p:1"}}
	own := Overrides{UserAgent: "new", ExtraHeaders: map[string]string{}, Viewport: &Viewport{Width: 1, Height: 1}}
	got := own.WithDefaults(saved)
	want := Overrides{UserAgent: "new", Locale: "de-DE", ExtraHeaders: map[string]string{}, Proxy: saved.Proxy, Viewport: own.Viewport}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged: %+v", got)
	}
	if names := strings.Join(got.Names(), " "); names != "viewport user_agent locale proxy" {
		t.Errorf("names: %s", names)
	}
	if other := strings.Join(got.DifferingNames(saved), " "); other != "viewport user_agent extra_headers" {
		t.Errorf("differ: %s", other)
	}
	if same := saved.DifferingNames(saved.WithDefaults(Overrides{})); len(same) > 0 {
		t.Errorf("equal overrides differ in %v", same)
	}
}

func TestOverrideLinesSayWhatWasReplaced(t *testing.T) {
	saved := Overrides{UserAgent: "old", Locale: "de-DE", ExtraHeaders: map[string]string{"A": "1"}}
	if lines := OverrideLines(Overrides{}, saved); lines != nil {
		t.Errorf("nothing was saved, the report says %+v", lines)
	}
	line := OverrideLines(saved, Overrides{UserAgent: "new", Timezone: "UTC", ExtraHeaders: map[string]string{}})[0]
	if line.Saved != 3 || line.Restored != 1 || line.Dropped != 2 || line.Reason.Code != report.Replaced || !strings.HasSuffix(line.Reason.Text, "user_agent, extra_headers") {
		t.Errorf("%+v", line)
	}
}

func TestWithoutPassword(t *testing.T) {
	o := Overrides{Proxy: &Proxy{Server: "http://p:1", Username: "ada", Password: "secret"}}
	stripped, had := o.WithoutPassword()
	if !had || stripped.Proxy.Password != "" || stripped.Proxy.Username != "ada" || o.Proxy.Password != "secret" {
		t.Errorf("%v: returned %+v, the original has %+v", had, stripped.Proxy, o.Proxy)
	}
	if _, had := stripped.WithoutPassword(); had {
		t.Error("there should be no password left")
	}
}
