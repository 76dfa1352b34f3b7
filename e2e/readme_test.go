package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/freeport"
)

// The commands of the README's quick start run as they are written. Only the
// daemon's address and the site's port differ; npm gives the packages that are
// installed for these tests. The second run uses Puppeteer in place of Playwright,
// the shell in place of full Chrome, and finds the default of the first one.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Preflight: true})
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples", "quickstart"), os.DirFS("../examples/quickstart")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, ".local", "share", "stasis")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "api-key"), []byte(daemon.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs("clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	npm := "#!/bin/sh\n[ \"$*\" = install ] && ln -sfn " + modules + " node_modules\n"
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(npm), 0o700); err != nil {
		t.Fatal(err)
	}
	commands := strings.ReplaceAll(quickStartCommands(t), "http://127.0.0.1:8080", d.URL)
	withPuppeteer := strings.NewReplacer("login.mjs", "login-puppeteer.mjs", "visit.mjs", "visit-puppeteer.mjs").Replace(commands)
	for i, run := range []string{commands, withPuppeteer} {
		if i == 1 {
			d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/default", body{"engine": browser.EngineShell})
		}
		ctx, cancel := context.WithTimeout(t.Context(), suiteDeadline)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", awaitSite(run))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"), "PORT="+freePort(t))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the site too
		out, err := cmd.CombinedOutput()
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // none is left of a run that succeeded
		}
		if err != nil || strings.Count(string(out), "Hello, Ada, you are logged in\n") != 2 || strings.Count(string(out), "site: a user logged in\n") != 1 {
			t.Fatalf("%v\n%s\n%s", err, run, out)
		}
		if !strings.Contains(string(out), `"default":{"moved":true`) {
			t.Errorf("the default did not move:\n%s", out)
		}
	}
	documentedFixture(t, d, modules)
	shellLoop(t, d, dir)

	// A command on the same machine needs neither the address nor the key.
	if err := os.WriteFile(filepath.Join(d.Dir, "api-key"), []byte(daemon.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := stasis(t, nil, "snapshot", "list", "--data-dir", d.Dir); code != 0 || strings.Count(said, "filesystem") != 3 {
		t.Errorf("the command ended with %d:\n%s", code, said)
	}
}

// documentedFixture runs Playwright Test with the fixture of docs/restore.md. Several tests
// at once, one of which fails, start logged in with the default that the quick start saved.
// No session is left.
func documentedFixture(t *testing.T, d *daemon.Daemon, modules string) {
	t.Helper()
	page, err := os.ReadFile("../docs/restore.md")
	if err != nil {
		t.Fatal(err)
	}
	_, fixture, found := strings.Cut(string(page), "```js\nimport { test as base")
	fixture, _, ended := strings.Cut(fixture, "```\n")
	if !found || !ended {
		t.Fatal("docs/restore.md has no fixture")
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("cookies: " + r.Header.Get("Cookie")))
	}))
	defer site.Close()
	const spec = `
import { expect } from '@playwright/test';
import { test } from './fixture.mjs';
for (const name of ['one', 'two', 'three']) {
  test(name, async ({ page }) => {
    await page.goto(process.env.SITE);
    await expect(page.locator('body')).toHaveText(name === 'three' ? 'this test fails' : 'cookies: sid=42', { timeout: 1000 });
  });
}`
	dir := t.TempDir()
	for name, text := range map[string]string{
		"fixture.mjs": "import { test as base" + fixture, "login.spec.mjs": spec,
		"playwright.config.mjs": "export default { workers: 2, fullyParallel: true, reporter: 'line' };",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), suiteDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "node_modules/@playwright/test/cli.js", "test")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key, "SITE="+site.URL)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "2 passed") || !strings.Contains(string(out), "1 failed") {
		t.Errorf("%v\n%s", err, out)
	}
	var live []struct{ Status string }
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions", nil).Into(t, &live)
	for _, s := range live {
		if s.Status != "completed" {
			t.Errorf("a session is %s", s.Status)
		}
	}
}

// shellLoop runs the loop of docs/command-line.md, which follows the quick start in its folder.
func shellLoop(t *testing.T, d *daemon.Daemon, dir string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(daemon.Binary(t), filepath.Join(dir, "bin", "stasis")); err != nil {
		t.Fatal(err)
	}
	blocks := slices.DeleteFunc(examples(t, "../docs/command-line.md", "sh"), func(block string) bool { return !strings.Contains(block, "session exec") })
	ctx, cancel := context.WithTimeout(t.Context(), suiteDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", awaitSite(strings.Join(blocks, ""))) //nolint:gosec // the project's own page
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "PORT="+freePort(t), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the site too
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil || len(blocks) != 1 || !strings.Contains(string(out), "Hello, Ada, you are logged in\n") || !strings.Contains(string(out), "version 3") {
		t.Errorf("%v\n%s", err, out)
	}
}

// quickStartCommands returns all shell commands of the README's quick start.
func quickStartCommands(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, start, _ := strings.Cut(string(text), "\n## Quick start\n")
	start, _, _ = strings.Cut(start, "\n## ")
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(start, -1)
	if len(blocks) < 4 {
		t.Fatalf("only %d blocks of commands found in the quick start", len(blocks))
	}
	var all strings.Builder
	for _, block := range blocks {
		all.WriteString(block[1])
	}
	return all.String()
}

// freePort returns a port of loopback that nothing listens on.
func freePort(t *testing.T) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
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
	for _, words := range []string{"save it as files", "its parked Chrome, thawed", "everything was restored"} {
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
