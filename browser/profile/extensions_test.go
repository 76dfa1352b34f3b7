package profile_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
)

var (
	idA = strings.Repeat("a", 32)
	idB = strings.Repeat("b", 32)
	idC = strings.Repeat("c", 32)
)

// Prepare updates the path in the entry of the environment's own extension and keeps the
// rest. It removes foreign entries, and adds one without access to files for an unknown
// extension.
func TestPrepareExtensions(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Preferences", `{"extensions":{"settings":{
		"`+idA+`":{"path":"/old/a","location":4,"creation_flags":32806,"newAllowFileAccess":true,"idle_install_info":{"path":"/etc"},"disable_reasons":[1],"granted_permissions":{"api":["tabs"]}},
		"`+strings.Repeat("d", 32)+`":{"path":"/elsewhere"},"rel":{"path":"rel/1.0_0"},"nameless":{"path":"","location":1},
		"none":{"location":1},"number":{"path":1},"text":"x"}}}`)
	off := false
	p := profile.Prepare{Extensions: []profile.Extension{
		{ID: idA, Path: "/new/a", Saved: true}, {ID: idB, Path: "/new/b"}, {ID: idC, Path: "/new/c", Saved: true, Enabled: &off}}}
	unknown, err := p.Run(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{idB, idC}, unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := prefs(t, root, "Preferences")
	want(t, got, `{"disable_reasons":[1],"granted_permissions":{"api":["tabs"]},"location":4,"newAllowFileAccess":false,"path":"/new/a"}`,
		"extensions", "settings", idA)
	want(t, got, `{"newAllowFileAccess":false}`, "extensions", "settings", idB)
	want(t, got, `{"disable_reasons":[1],"location":4,"newAllowFileAccess":false,"path":"/new/c"}`, "extensions", "settings", idC)
	want(t, got, "", "extensions", "settings", strings.Repeat("d", 32))
	for _, gone := range []string{"rel", "nameless", "none", "number", "text"} {
		want(t, got, "", "extensions", "settings", gone)
	}
	want(t, got, "true", "extensions", "ui", "developer_mode")
}

// The enabled state is what Chrome last wrote. An extension without a folder in its entry
// is not listed.
func TestEnabledExtensions(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Secure Preferences", `{"extensions":{"settings":{"`+idA+`":{"path":"/a","disable_reasons":[1]}}}}`)
	put(t, root, "Default/Preferences", `{"extensions":{"settings":{
		"`+idB+`":{"path":"/b","disable_reasons":[]},"`+idC+`":{"newAllowFileAccess":false}}}}`)
	if diff := cmp.Diff(map[string]bool{idA: false, idB: true}, profile.EnabledExtensions(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	put(t, root, "Default/Preferences", "{")
	if diff := cmp.Diff(map[string]bool{idA: false}, profile.EnabledExtensions(root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Extensions' files are archived, except those that Chrome writes. Beside the profile, an
// archive contains nothing else.
func TestFilesOfExtensions(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"Default/Cookies", "extensions/" + idA + "/manifest.json", "extensions/" + idA + "/Cache/LOCK",
		"extensions/" + idA + "/_metadata/generated_indexed_rulesets/_ruleset1", "extensions/" + idA + "/_locales/en/messages.json"} {
		put(t, root, name, name)
	}
	files, err := profile.Select(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	kept := []string{"Default/Cookies", "extensions/" + idA + "/Cache/LOCK", "extensions/" + idA + "/_locales/en/messages.json",
		"extensions/" + idA + "/manifest.json"}
	if diff := cmp.Diff(kept, names(files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range kept {
		if !profile.Accept(name) {
			t.Errorf("%s is archived but not accepted", name)
		}
	}
	for _, name := range []string{"extensions", "extensions/x", "extensions/" + idA, "extensions/" + idA + "/", "extensions/" + idA + "/../x",
		"extensions/" + idA + "/_metadata/x", "extensions/../x", "extensions//" + idA + "/x", "extensions/NativeMessagingHosts/x"} {
		if profile.Accept(name) {
			t.Errorf("%q is accepted", name)
		}
	}
}

// Prepare keeps only those preferences and content settings of an extension that
// extension APIs can set.
func TestPrepareControlledPreferences(t *testing.T) {
	root := t.TempDir()
	put(t, root, "Default/Preferences", `{"profile":{"managed_default_content_settings":{"javascript":2},"managed":{"x":1}},"managed_x":1,
		"extensions":{"settings":{"`+idA+`":{"path":"/old/a",
			"preferences":{"proxy":{"mode":"direct"},"policy.url_blocklist":[],"webkit.webprefs.default_font_size":20,"profile":{}},
			"incognito_preferences":[],"content_settings":[{"type":"javascript","setting":"block"},{"type":"file-system-read-guard","setting":"allow"},1]}}}}`)
	if _, err := (profile.Prepare{Extensions: []profile.Extension{{ID: idA, Path: "/new/a"}}}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	got := prefs(t, root, "Preferences")
	want(t, got, `{"content_settings":[{"setting":"block","type":"javascript"}],"location":4,"newAllowFileAccess":false,"path":"/new/a",`+
		`"preferences":{"proxy":{"mode":"direct"},"webkit.webprefs.default_font_size":20}}`, "extensions", "settings", idA)
	want(t, got, "", "profile", "managed_default_content_settings")
	want(t, got, "", "profile", "managed")
	want(t, got, "", "managed_x")
}
