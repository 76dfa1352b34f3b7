package mux

import (
	"os"
	"path/filepath"
	"testing"
)

// Which questions of a page a client answers follows from its last commands, until it has
// disconnected.
func TestClientAnswers(t *testing.T) {
	m, _ := start(t, Options{}, nil)
	c := connect(t, m, ServeOptions{Target: "T1"})
	check := func(after string, dialogs, files bool) {
		t.Helper()
		if d, f := m.ClientAnswers("T1"); d != dialogs || f != files {
			t.Errorf("after %s: %t, %t", after, d, f)
		}
	}
	check("nothing", false, false)
	for i, step := range []struct {
		method, params string
		dialogs, files bool
	}{
		{"Page.enable", "{}", true, false},
		{"Page.setInterceptFileChooserDialog", `{"enabled":true}`, true, true},
		{"Page.setInterceptFileChooserDialog", `{"enabled":false}`, true, false},
		{"Page.setInterceptFileChooserDialog", `{"enabled":true}`, true, true},
		{"Page.disable", "{}", false, false},
		{"Page.enable", "{}", true, false},
	} {
		c.call(int64(i+1), "", step.method, step.params)
		check(step.method, step.dialogs, step.files)
	}
	if d, f := m.ClientAnswers("T2"); d || f {
		t.Error("another tab is answered too")
	}
	close(c.in)
	if err := c.gone(CloseNormal); err != nil {
		t.Error(err)
	}
	check("the client has disconnected", false, false)
}

// FilePath finds the session's files, and nothing beside them.
func TestFilePath(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m, _ := start(t, Options{Policy: Policy{FilesDir: dir}}, nil)
	if path, err := m.FilePath("a.txt"); err != nil || path != filepath.Join(dir, "a.txt") {
		t.Errorf("%q, %v", path, err)
	}
	for _, name := range []string{"b.txt", "../a.txt", "/etc/passwd", ""} {
		if path, err := m.FilePath(name); err == nil {
			t.Errorf("%q: %q", name, path)
		}
	}
}
