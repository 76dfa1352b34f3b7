package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// The README's quick start works as written, with only the base URL and the key filled
// in. It also works a second time.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{})
	dir := t.TempDir()
	script, err := os.ReadFile("../examples/quickstart.mjs")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "quickstart.mjs")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		cmd := exec.CommandContext(t.Context(), "node", file)
		cmd.Env = append(os.Environ(), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Hello, Ada, you are logged in\n") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// The demo is restored logged in, says so, and leaves nothing behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	tmp := daemon.DataDir(t)
	cmd := exec.CommandContext(t.Context(), daemon.Binary(t), "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, words := range []string{"save it as files", "its parked Chrome, thawed", "everything came back"} {
		if !strings.Contains(string(out), words) {
			t.Errorf("the demo does not print %q:\n%s", words, out)
		}
	}
	if strings.Contains(string(out), "LOST") || strings.Contains(string(out), "level=") {
		t.Errorf("something was lost, or the demo prints log lines:\n%s", out)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) != 0 {
		t.Errorf("the demo leaves %v (%v)", left, err)
	}
}
