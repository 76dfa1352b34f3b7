package profile_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
)

// settingsOf returns the settings that an archive of a user data directory has.
func settingsOf(t *testing.T, root, name string) (value any) {
	t.Helper()
	files, err := profile.Select(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name != "Default/"+name {
			continue
		}
		body := f.Data
		if body == nil {
			if body, err = os.ReadFile(f.Path); err != nil {
				t.Fatal(err)
			}
		}
		if err := json.Unmarshal(body, &value); err != nil {
			t.Fatal(err)
		}
		if f.Size != int64(len(body)) {
			t.Errorf("%s: size %d, the content has %d bytes", name, f.Size, len(body))
		}
	}
	return value
}

// carry makes an environment enter the profile of a running Chrome, which then writes
// its settings.
func carry(t *testing.T, saved, loaded, running map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, body := range saved {
		put(t, root, "Default/"+name, body)
	}
	put(t, root, "Spare/Cookies", "jar")
	for name, body := range loaded {
		put(t, root, "Spare/"+name, body)
	}
	if err := profile.Carry(root); err != nil {
		t.Fatal(err)
	}
	for name, body := range running {
		put(t, root, "Spare/"+name, body)
	}
	return root
}

// The settings of an environment and the changes of the session are both saved, from a
// running and from an ended Chrome. What Chrome sets in every new profile replaces
// nothing.
func TestCarriedSettings(t *testing.T) {
	const (
		saved = `{"profile": {"name": "mine", "creation_time": "1", "content_settings": {"exceptions": {"engagement": {"a": {"n": 1}, "b": {"n": 1}}}}},
			"kept": [1], "removed": true, "both": "saved", "only_saved": 12345678901234567890}`
		loaded  = `{"profile": {"name": "empty"}, "removed": true, "both": "loaded", "same": "s"}`
		running = `{"profile": {"name": "empty", "creation_time": "2", "content_settings": {"exceptions": {"engagement": {"b": {"n": 2}, "c": {"n": 3}}}}},
			"both": "running", "same": "s", "added": {"x": 1}}`
		want = `{"profile": {"name": "mine", "creation_time": "1", "content_settings": {"exceptions": {"engagement": {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}}}}},
			"kept": [1], "both": "running", "only_saved": 12345678901234567890, "added": {"x": 1}}`
	)
	var expected any
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	root := carry(t, map[string]string{"Preferences": saved, "History": "visits"}, map[string]string{"Preferences": loaded}, map[string]string{"Preferences": running})
	if diff := cmp.Diff(expected, settingsOf(t, root, "Preferences")); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	to := t.TempDir()
	c := profile.NewCopy(to)
	updateUntilSettled(t, c, root)
	if diff := cmp.Diff(expected, settingsOf(t, to, "Preferences")); diff != "" {
		t.Errorf("copied (-want +got):\n%s", diff)
	}
	// A daemon that is killed may leave the merged file, or a part of the old folder.
	again := carry(t, map[string]string{"Preferences": saved}, map[string]string{"Preferences": loaded}, map[string]string{"Preferences": want})
	if diff := cmp.Diff(expected, settingsOf(t, again, "Preferences")); diff != "" {
		t.Errorf("merged twice (-want +got):\n%s", diff)
	}
	put(t, root, "Carried.merged/saved/Preferences", "{}")
	if err := profile.UseDefaultFolder(root); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, settingsOf(t, root, "Preferences")); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
	left, err := filepath.Glob(filepath.Join(root, "*"))
	if diff := cmp.Diff([]string{filepath.Join(root, "Default")}, left); diff != "" || err != nil {
		t.Errorf("left (-want +got):\n%s%v", diff, err)
	}
}

// The scores of sites, which count visits, are those of the environment. A site that is new
// in the session has its own.
func TestCarriedScores(t *testing.T) {
	of := func(sites string) map[string]string {
		return map[string]string{"Preferences": `{"profile": {"content_settings": {"exceptions": {"site_engagement": ` + sites + `}}}}`}
	}
	root := carry(t, of(`{"a": {"setting": {"rawScore": 50}}}`), of(`{}`), of(`{"a": {"setting": {"rawScore": 3}}, "b": {"setting": {"rawScore": 1}}}`))
	var want any
	if err := json.Unmarshal([]byte(of(`{"a": {"setting": {"rawScore": 50}}, "b": {"setting": {"rawScore": 1}}}`)["Preferences"]), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, settingsOf(t, root, "Preferences")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Settings that one of the two lacks, or that are not JSON, are no obstacle.
func TestCarriedSettingsAreMissing(t *testing.T) {
	for name, test := range map[string]struct {
		saved, loaded, running map[string]string
		want                   any
	}{
		"Chrome wrote none":         {map[string]string{"Preferences": `{"a": 1}`}, nil, nil, map[string]any{"a": 1.0}},
		"an unchanged list":         {map[string]string{"Preferences": `[1]`}, map[string]string{"Preferences": `[]`}, nil, []any{1.0}},
		"a changed list":            {map[string]string{"Preferences": `[1]`}, map[string]string{"Preferences": `[]`}, map[string]string{"Preferences": `[2]`}, []any{2.0}},
		"the environment has none":  {nil, nil, map[string]string{"Preferences": `{"b": 2}`}, map[string]any{"b": 2.0}},
		"the environment's are bad": {map[string]string{"Preferences": `{`}, nil, map[string]string{"Preferences": `{"b": 2}`}, map[string]any{"b": 2.0}},
		"Chrome's are bad":          {map[string]string{"Preferences": `{"a": 1}`}, nil, map[string]string{"Preferences": `x`}, map[string]any{"a": 1.0}},
	} {
		root := carry(t, test.saved, test.loaded, test.running)
		if diff := cmp.Diff(test.want, settingsOf(t, root, "Preferences")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Pages may notice what the environment sets and Chrome's empty profile does not. They
// cannot notice Chrome's own records.
func TestNoticeable(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Preferences", `{"profile": {"creation_time": "1", "default_content_setting_values": {"images": 2}, "same": 1,
		"content_settings": {"exceptions": {"site_engagement": {"a.com": {"setting": {"rawScore": 9}}},
			"media_engagement": {"https://a.com,*": {"setting": {"hasHighScore": true}}, "https://b.com,*": {"setting": {"hasHighScore": false, "visits": 2}}}}}},
		"sessions": {"x": 1}, "webkit": {"webprefs": {"fonts": {"standard": "x"}}}}`)
	put(t, root, "Spare/Preferences", `{"profile": {"creation_time": "2", "same": 1}}`)
	names, err := profile.Noticeable(root)
	want := []string{"media_engagement", "profile.default_content_setting_values.images", "webkit.webprefs.fonts.standard"}
	if diff := cmp.Diff(want, names); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
}

// The settings with which empty profiles start name no profile.
func TestStartSettings(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Spare/Preferences", `{"enterprise_profile_guid": "g", "google": {"services": {"signin_scoped_device_id": "d"}}, "protection": {}, "profile": {"name": "Person 1"}}`)
	settings, err := profile.StartSettings(root)
	if err != nil || string(settings) != `{"profile":{"name":"Person 1"}}` {
		t.Errorf("%s, %v", settings, err)
	}
	to := t.TempDir()
	if err := profile.WriteStartSettings(to, settings); err != nil {
		t.Fatal(err)
	}
	if body, err := os.ReadFile(filepath.Join(to, "Spare/Preferences")); err != nil || string(body) != string(settings) {
		t.Errorf("%s, %v", body, err)
	}
}
