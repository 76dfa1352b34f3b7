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

// Without --config the user's own file is read, else that of the machine; for root only the latter.
func TestDefaultConfigFile(t *testing.T) {
	dir := t.TempDir()
	own, machine := filepath.Join(dir, "own"), filepath.Join(dir, "machine")
	for _, step := range []struct{ write, want string }{{"", own}, {machine, machine}, {own, own}} {
		if step.write != "" {
			if err := os.WriteFile(step.write, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := firstConfigFile(own, machine); got != step.want {
			t.Errorf("after writing %q: got %s, want %s", step.write, got, step.want)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", dir)
	want := filepath.Join(dir, "stasis", "config.yaml")
	if _, err := os.Stat(systemConfigFile); err == nil || os.Geteuid() == 0 {
		want = systemConfigFile
	}
	if got := defaultConfigFile(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
