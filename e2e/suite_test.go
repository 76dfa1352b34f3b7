package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// suiteDeadline bounds one run of the suite, and one of the commands of a page.
const suiteDeadline = 10 * time.Minute

// testTimeout bounds one test, whatever its config says. Playwright's 30 s are too short on a busy
// machine.
const testTimeout = "--timeout=120000"

// writeSuite is set to write the results of a launched Chromium to suiteResults.
var writeSuite = flag.Bool("write-suite", false, "write the results of the suite in a launched Chromium")

// suiteResults has the results of all tests of the suite in a Chromium that Playwright launches.
// The long form tests that they hold.
const suiteResults = "testdata/suite.json"

// The suite in clients/suite has the same results in sessions of Stasis as in a Chromium that
// Playwright launches, test by test. Its files do not differ, only the config does.
func TestSuite(t *testing.T) {
	t.Parallel()
	site := newSuiteSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: !storetest.Long()}) // the short form has no full Chrome
	dir := suiteFolder(t)
	env := []string{"SITE=" + site.URL, "STASIS_URL=" + d.URL, "STASIS_API_KEY=" + daemon.Key, "CHROMIUM=/usr/bin/chromium"}
	args := []string{"--workers=2"}
	want := recordedSuite(t)
	if storetest.Long() || *writeSuite {
		launchedSuite(t, dir, env, want, args...)
		env = append(env, "RECORD=on")
	} else {
		const some = `ada login|bob login.spec.js starts|the API knows|dialogs a|saves a download|window.open`
		args = append(args, "--grep="+some)
		chosen := regexp.MustCompile(some)
		maps.DeleteFunc(want, func(name, _ string) bool { return !chosen.MatchString(name) })
	}
	if len(want) < 14 {
		t.Errorf("only %d tests are chosen", len(want))
	}
	type form struct {
		name string
		how  body
	}
	forms := []form{{"shell", body{"engine": browser.EngineShell}}}
	if storetest.Long() {
		forms = append(forms,
			form{"full Chrome", body{"engine": browser.EngineChrome}},
			form{"a session for all workers", body{"per": "run"}},
			form{"a session for each test", body{"per": "test", "engine": browser.EngineShell}},
			form{"isolated contexts", body{"contexts": "isolated"}},
		)
	}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			how, err := json.Marshal(f.how)
			if err != nil {
				t.Fatal(err)
			}
			sameResults(t, runSuite(t, dir, "stasis.config.js", append(env, "SESSIONS="+string(how)), args...), want)
			noneLive(t, d)
		})
	}
}

func sameResults(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s:\n  launched: %s\n  Stasis:   %s", name, want[name], got[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d tests ran, and %d with a launched Chromium", len(got), len(want))
	}
}

func recordedSuite(t *testing.T) (results map[string]string) {
	t.Helper()
	raw, err := os.ReadFile(suiteResults)
	if err == nil {
		err = json.Unmarshal(raw, &results)
	}
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// launchedSuite runs the suite in a Chromium that Playwright launches, without and with
// recordings. It puts the results with recordings into recorded, whose results must be those without.
func launchedSuite(t *testing.T, dir string, env []string, recorded map[string]string, args ...string) {
	t.Helper()
	run := func(env []string) map[string]string {
		found := runSuite(t, dir, "playwright.config.js", env, args...)
		maps.DeleteFunc(found, func(name, _ string) bool { return strings.HasPrefix(name, "setup ") }) // the package logs in
		return found
	}
	found := run(env)
	if *writeSuite {
		raw, err := json.MarshalIndent(found, "", "  ")
		if err == nil {
			err = os.WriteFile(suiteResults, append(raw, '\n'), 0o644) //nolint:gosec // a file of the repository
		}
		if err != nil {
			t.Fatal(err)
		}
	} else {
		sameResults(t, recorded, found)
	}
	clear(recorded)
	maps.Copy(recorded, run(append(env, "RECORD=on")))
}

// suiteFolder returns a copy of the suite with the package installed as npm does it.
func suiteFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	modules, err := filepath.Abs("clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("clients/suite")); err != nil {
		t.Fatal(err)
	}
	packed, err := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--pack-destination", dir, "../clients/playwright").Output()
	if err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(dir, "node_modules", "@stasisd", "playwright")
	if err := os.MkdirAll(into, 0o700); err != nil {
		t.Fatal(err)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(dir, strings.TrimSpace(string(packed))), "--strip-components=1", "-C", into)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink(filepath.Join(modules, "@playwright"), filepath.Join(dir, "node_modules", "@playwright")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runSuite runs Playwright Test and returns the result of each test: the status of each try, the
// names of the attachments other than those of Stasis, and the first lines of the errors.
func runSuite(t *testing.T, dir, config string, env []string, args ...string) map[string]string {
	t.Helper()
	report, out := reportOfSuite(t, dir, config, env, args...)
	for _, e := range report.Errors {
		t.Errorf("%s: %s", config, e.Message)
	}
	found := report.results(t)
	if len(found) == 0 {
		t.Fatalf("%s: no test ran: %s", config, out)
	}
	return found
}

// reportOfSuite runs Playwright Test and returns its report and what it printed.
func reportOfSuite(t *testing.T, dir, config string, env []string, args ...string) (report suiteReport, printed string) {
	t.Helper()
	results := filepath.Join(dir, "results.json")
	_ = os.Remove(results)
	ctx, cancel := context.WithTimeout(t.Context(), suiteDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{"node_modules/@playwright/test/cli.js", "test", "--config", config}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "RESULTS="+results, "PLAYWRIGHT_JSON_OUTPUT_FILE="+results), env...)
	out, err := cmd.CombinedOutput()
	raw, failed := os.ReadFile(results)
	if failed != nil {
		t.Fatalf("%s: %v: %s", config, err, out)
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	return report, string(out)
}

// suiteReport is a part of what Playwright's JSON reporter writes.
type suiteReport struct {
	Suites []suiteOfTests
	Errors []struct{ Message string }
}

// results returns what runSuite does.
func (r suiteReport) results(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, s := range r.Suites {
		s.collect(t, "", found)
	}
	return found
}

type suiteOfTests struct {
	Title  string
	File   string
	Suites []suiteOfTests
	Specs  []struct {
		Title string
		Tests []struct {
			ProjectName string
			Results     []struct {
				Status      string
				Errors      []struct{ Message string }
				Attachments []struct{ Name string }
			}
		}
	}
}

func (s suiteOfTests) collect(t *testing.T, above string, found map[string]string) {
	t.Helper()
	above = strings.TrimSpace(above + " " + s.Title)
	for _, spec := range s.Specs {
		for _, test := range spec.Tests {
			var tries []string
			for _, r := range test.Results {
				var attached []string
				for _, a := range r.Attachments {
					// Playwright may or may not have recorded a page of a test that skips itself.
					if a.Name != "stasis session" && r.Status != "skipped" {
						attached = append(attached, a.Name)
					}
				}
				slices.Sort(attached)
				tries = append(tries, fmt.Sprint(r.Status, attached))
				for _, e := range r.Errors {
					message, _, _ := strings.Cut(e.Message, "\n")
					tries[len(tries)-1] += " " + terminalColours.ReplaceAllString(message, "")
				}
			}
			found[test.ProjectName+" "+above+" "+spec.Title] = strings.Join(tries, ", ")
		}
	}
	for _, below := range s.Suites {
		below.collect(t, above, found)
	}
}

// The configs that the pages show run as they are written; only the site's address differs. So
// does the example for Puppeteer. The short form runs the first config only.
func TestSuiteDocumented(t *testing.T) {
	t.Parallel()
	site := newSuiteSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", body{"engine": browser.EngineShell})
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/bob", body{"engine": browser.EngineShell})
	env := []string{"STASIS_URL=" + d.URL, "STASIS_API_KEY=" + daemon.Key, "PASSWORD=a secret"}
	const spec = `
import { test, expect } from '@playwright/test';
test('is logged in', async ({ page }, info) => {
  await page.goto('/');
  await expect(page.getByRole('heading')).toHaveText('Hello, ' + (info.project.name || 'ada'));
});`
	dir := suiteFolder(t)
	if err := os.RemoveAll(filepath.Join(dir, "tests")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "one.spec.js"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	var configs []string
	for _, page := range []string{"../docs/playwright.md", "../clients/playwright/README.md"} {
		configs = append(configs, blocksOf(t, page, "// playwright.config.js", site.URL)...)
	}
	if len(configs) != 4 {
		t.Fatalf("the pages have %d configs", len(configs))
	}
	for i, config := range configs {
		if i > 0 && !storetest.Long() {
			break
		}
		if i == len(configs)-1 { // a browser of the machine
			config = strings.Replace(config, "use: {", "use: { launchOptions: { executablePath: '/usr/bin/chromium' },", 1)
		}
		if err := os.WriteFile(filepath.Join(dir, "playwright.config.js"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		got := runSuite(t, dir, "playwright.config.js", env, "--reporter=json", testTimeout)
		if len(got) != 1 && len(got) != 2 {
			t.Errorf("%d tests ran with\n%s", len(got), config)
		}
		for name, result := range got {
			if result != "passed[]" {
				t.Errorf("%s: %s with\n%s", name, result, config)
			}
		}
	}

	blocks := blocksOf(t, "../docs/puppeteer.md", "// login.test.mjs", site.URL)
	if len(blocks) != 1 {
		t.Fatalf("docs/puppeteer.md has %d tests", len(blocks))
	}
	modules, err := filepath.Abs("clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := errors.Join(os.Symlink(modules, filepath.Join(dir, "node_modules")), os.WriteFile(filepath.Join(dir, "login.test.mjs"), []byte(blocks[0]), 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), suiteDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=tap", "login.test.mjs")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "# pass 2\n") {
		t.Errorf("%v: %s", err, out)
	}
	noneLive(t, d)
}

// Each project says what is wrong with it. A session ends if its worker is killed, and one that is
// to be saved moves the default, unless a test failed in it. A login that failed is not saved, and
// one that has expired is renewed. The config is TypeScript in a CommonJS package, as most are.
// The short form leaves out two projects that pass: a session for each test, and a launched Chromium.
func TestSuiteProjects(t *testing.T) {
	t.Parallel()
	site := newSuiteSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	const config = `
import { defineConfig, type Page } from '@playwright/test';
import { session, stasis } from '@stasisd/playwright';
import { LoginPage } from './pages/login.js';
const ada: string = 'ada', shell = { engine: 'shell' as const };
const login = (name: string, password: string) => async (page: Page) => {
  const form = new LoginPage(page);
  await form.goto();
  await form.logIn(name, password);
};
const loginCheck = { url: '/', selector: 'h1' , absent_selector: 'form', timeout_seconds: 60 };
export default stasis(defineConfig({
  testDir: 'tests', workers: 2,
  use: { baseURL: process.env.SITE },
  projects: [
    { name: 'saved', use: session({ user: ada, ...shell, saveAsDefault: true, login: login(ada, 'a secret') }) },
    { name: 'saved too', use: session({ user: ada, ...shell, save: true, saveAsDefault: true }) },
    { name: 'failed', use: session({ user: ada, ...shell, save: true, saveAsDefault: true }) },
    { name: 'killed', use: session({ user: ada, ...shell }) },
    { name: 'cleared', use: session({ user: ada, ...shell }) },
    { name: 'cleared alone', use: session({ user: ada, ...shell, per: 'test' }) },
    { name: 'missing', use: session({ user: 'eve', ...shell }) },
    { name: 'firefox', use: { browserName: 'firefox' } },
    { name: 'launched', use: { connectOptions: undefined, launchOptions: { executablePath: process.env.CHROMIUM } } },
    { name: 'guessed', use: session({ user: 'bob', ...shell, login: login('bob', 'a guess') }) },
    { name: 'empty', use: session({ user: 'dora', ...shell, login: async (page) => { await page.goto('/empty'); } }) },
    { name: 'checked', use: session({ user: 'bob', ...shell, loginCheck, login: login('bob', 'a secret') }) },
    { name: 'short', use: session({ user: 'carl', ...shell, login: login('carl', 'a secret') }) },
    { name: 'old', use: session({ snapshot: process.env.OLD, ...shell }) },
  ],
}));`
	const spec = `
import { test, expect } from '@playwright/test';
test('visits', async ({ page, context }, info) => {
  const { name } = info.project;
  await page.goto('/');
  if (name === 'killed') process.kill(process.pid, 'SIGKILL');
  if (name.startsWith('cleared')) await context.clearCookies();
  if (['killed', 'cleared', 'cleared alone', 'missing', 'firefox', 'launched', 'failed'].includes(name)) await expect(page.reload().then(() => page.url())).resolves.toContain('/login');
});`
	dir := suiteFolder(t)
	for name, text := range map[string]string{"playwright.config.ts": config, "tests/one.spec.ts": spec, "package.json": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Remove(filepath.Join(dir, "playwright.config.js"))
	env := []string{"SITE=" + site.URL, "STASIS_URL=" + d.URL, "STASIS_API_KEY=" + daemon.Key, "CHROMIUM=/usr/bin/chromium"}
	run := func(projects ...string) (results map[string]string, out string) {
		args := []string{"--reporter=json", testTimeout, "one.spec.ts"}
		for _, p := range projects {
			args = append(args, "--project="+p)
		}
		report, out := reportOfSuite(t, dir, "playwright.config.ts", env, args...)
		for _, e := range report.Errors {
			out += e.Message
		}
		return report.results(t), out
	}
	defaultOf := func(user string) (now struct {
		Version    int
		SnapshotID string `json:"snapshot_id"`
	}) {
		if a := d.Call(t, http.MethodGet, "/v1/users/"+user+"/default", nil); a.Status == http.StatusOK {
			a.Into(t, &now)
		}
		return now
	}

	_, out := run("guessed", "empty")
	for _, want := range []string{"the login of bob failed: " + site.URL + "/login still shows a password field", "the login of dora failed: no login was recognised"} {
		if !strings.Contains(out, want) {
			t.Errorf("not printed: %s\n%s", want, out)
		}
	}
	for _, user := range []string{"ada", "bob", "dora"} {
		if v := defaultOf(user).Version; v != 0 {
			t.Errorf("the default of %s has version %d", user, v)
		}
	}

	wants := map[string]string{
		"saved": "passed", "saved too": "passed", "failed": "toContain", "killed": "worker process exited",
		"cleared": "Stasis does not allow Storage.clearCookies",
		"missing": "set `login` in the config", "firefox": "sessions are Chromium, and this project's browser is firefox",
		"checked": "passed", "short": "passed",
	}
	if storetest.Long() {
		wants["cleared alone"], wants["launched"] = "passed", "passed"
	}
	got, out := run(slices.Collect(maps.Keys(wants))...)
	for project, want := range wants {
		if result := got[project+" one.spec.ts visits"]; !strings.Contains(result, want) {
			t.Errorf("%s: %s", project, result)
		}
	}
	if result := got["cleared one.spec.ts visits"]; !strings.Contains(result, "set `per: 'test'` or") {
		t.Errorf("cleared: %s", result)
	}
	if !strings.Contains(out, "logged in ada; saved as version 1") {
		t.Error(out)
	}
	for user, want := range map[string]int{"ada": 3, "bob": 1, "carl": 1} {
		if v := defaultOf(user).Version; v != want {
			t.Errorf("the default of %s has version %d", user, v)
		}
	}

	daemon.Eventually(t, grace, "the login of carl expires", func() bool {
		var now struct{ Logins []struct{ Expired bool } }
		d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+defaultOf("carl").SnapshotID, nil).Into(t, &now)
		return now.Logins[0].Expired
	})
	old := defaultOf("carl").SnapshotID
	env = append(env, "OLD="+old)
	_, out = run("old", "short")
	for _, want := range []string{"snapshot " + old + " starts logged out: the login at 127.0.0.1 expired at ", "logging in carl again: the login at 127.0.0.1 expired at "} {
		if !strings.Contains(out, want) {
			t.Errorf("not printed: %s\n%s", want, out)
		}
	}
	if v := defaultOf("carl").Version; v != 2 {
		t.Errorf("the default of carl has version %d", v)
	}
	noneLive(t, d)
}

// blocksOf returns the code of a page that begins with a line, with the site's address
// instead of the example's.
func blocksOf(t *testing.T, page, first, site string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, block := range regexp.MustCompile("(?ms)^```js\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(block[1], first+"\n") {
			found = append(found, strings.ReplaceAll(block[1], "https://example.com", site))
		}
	}
	return found
}

var terminalColours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// noneLive reports sessions that have not ended.
func noneLive(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	var all []struct {
		SessionID string `json:"session_id"`
		Status    string
	}
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions", nil).Into(t, &all)
	for _, s := range all {
		if s.Status != "completed" {
			t.Errorf("session %s is %s", s.SessionID, s.Status)
		}
	}
}
