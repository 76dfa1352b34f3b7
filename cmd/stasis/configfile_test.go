//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The package's file is valid, and so are the settings that it has as comments.
func TestPackagedConfigFile(t *testing.T) {
	f, err := readConfigFile("../../packaging/config.yaml", newParser(&cli{}).Model.Children[0])
	if err != nil {
		t.Fatal(err)
	}
	if dir := f.settings["data-dir"].text; dir != "/var/lib/stasis" {
		t.Errorf("data-dir: %q, want the directory that the package makes", dir)
	}
	raw, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	set := len(f.settings)
	f.settings = map[string]fileSetting{}
	if err := f.parse(regexp.MustCompile(`(?m)^# ([a-z-]+: )`).ReplaceAll(raw, []byte("$1"))); err != nil || len(f.settings) <= set {
		t.Errorf("with its comments: %d settings, %v", len(f.settings), err)
	}
}

// The file without --config is the user's own.
func TestDefaultConfigFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	want := filepath.Join(dir, "stasis", "config.yaml")
	if os.Geteuid() == 0 {
		want = "/etc/stasis/config.yaml"
	}
	if got := defaultConfigFile(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
