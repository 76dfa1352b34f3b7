package profile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/profile"
)

// Prepare removes Chrome's policies in an imported profile from both settings files. It
// writes the daemon's own list of refused addresses, and that nothing is printed.
func TestPreparePolicies(t *testing.T) {
	root := t.TempDir()
	imported := `{"policy":{"url_allowlist":["file://*"],"url_blocklist":[],"extra":1},"kept":true}`
	put(t, root, "Default/Preferences", imported)
	put(t, root, "Default/Secure Preferences", imported)
	if _, err := (profile.Prepare{}).Run(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	want(t, prefs(t, root, "Preferences"), `{"url_blocklist":["file://*","chrome://*","devtools://*"]}`, "policy")
	want(t, prefs(t, root, "Preferences"), "true", "kept")
	want(t, prefs(t, root, "Preferences"), "false", "printing", "enabled")
	want(t, prefs(t, root, "Secure Preferences"), "", "policy")
	want(t, prefs(t, root, "Secure Preferences"), "true", "kept")
}

// An archive contains neither the list nor any other policy, nor that nothing is printed.
// Other files, and settings without these, are unchanged.
func TestUnpreparePolicies(t *testing.T) {
	root := t.TempDir()
	for name, body := range map[string]string{
		"Default/Preferences":        `{"policy":{"url_blocklist":["file://*"]},"kept":9007199254740993,"printing":{"enabled":false,"kept":1}}`,
		"Default/Secure Preferences": `{"kept":true}`,
		"Default/Other":              `{"policy":1}`,
	} {
		put(t, root, name, body)
	}
	var files []profile.File
	for _, name := range []string{"Default/Preferences", "Default/Secure Preferences", "Default/Other"} {
		files = append(files, profile.File{Name: name, Path: filepath.Join(root, name)})
	}
	got, err := profile.Unprepare(files)
	if err != nil {
		t.Fatal(err)
	}
	var archived []string
	for _, f := range got {
		archived = append(archived, string(f.Data))
	}
	if diff := cmp.Diff([]string{`{"kept":9007199254740993,"printing":{"kept":1}}`, "", ""}, archived); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got[0].Size != int64(len(got[0].Data)) {
		t.Errorf("size %d of %s", got[0].Size, got[0].Data)
	}
	if left, err := os.ReadFile(files[0].Path); err != nil || len(left) == len(got[0].Data) {
		t.Errorf("the file on disk has changed: %s, %v", left, err)
	}
}
