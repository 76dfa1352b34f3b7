package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// The TypeScript client, packed as docs/typescript.md says: its own tests pass, and the
// page's examples compile and run as one module. The long form runs them in both engines.
func TestTypeScriptClient(t *testing.T) {
	t.Parallel()
	site, logins := loginSite(t)
	dir := installedClient(t)
	page := strings.ReplaceAll(strings.Join(examples(t, "../docs/typescript.md", "ts"), "\n"), "http://127.0.0.1:8090/", site)
	files := map[string]string{"types.ts": "", "stasis.test.mjs": ""}
	for name := range files {
		raw, err := os.ReadFile("../clients/typescript/test/" + name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(raw)
	}
	engines := enginesOfExamples()
	compile := []string{"node_modules/.tsc", "--module", "nodenext", "--target", "es2022", "--lib", "es2022", "--strict",
		"--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--types", "node", "--skipLibCheck", "types.ts"}
	for _, engine := range engines {
		compile = append(compile, engine+".ts")
		files[engine+".ts"] = strings.NewReplacer("'ada'", "'ada "+engine+"'", "'grace'", "'grace "+engine+"'").Replace(page)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodeIn(t, nil, dir, compile...)
	nodeIn(t, nil, dir, "--test", "stasis.test.mjs")

	d := daemon.Start(t, daemon.Options{NoSpares: true})
	form := regexp.MustCompile(`^Hello, Ada, you are logged in
Hello, Ada, you are logged in \w+
true
2 \S+
1 \S+
3
true
\d+
true
\[ 'cv.txt' \] a CV
http://127\.0\.0\.1:\d+/v1/sessions/\S+/live\?ticket=\S+
default restored
404 session_not_found true
$`)
	for i, engine := range engines {
		for _, user := range []string{"ada " + engine, "default"} {
			d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/"+user, body{"engine": engine})
		}
		if out := nodeIn(t, d, dir, engine+".js"); !form.MatchString(out) {
			t.Errorf("%s: the page's examples print:\n%s", engine, out)
		}
		if n := logins.Load(); n != int64(i+1) {
			t.Errorf("%s: the site saw %d logins", engine, n)
		}
		used := create(t, d, body{"restore_default_environment_from_user_id": "grace " + engine, "engine": engine})
		if raw := drive(t, chromeDP, used.CDP, visit(site), evaluate("document.title")); text(t, raw[len(raw)-1]) != "Welcome" {
			t.Errorf("%s: the imported default is not logged in", engine)
		}
		d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/"+used.ID, nil)
	}
	inPage(t, d, filepath.Join(dir, "node_modules/stasis-client/dist"))
	nothingLeft(t, d)
}

// inPage runs the client in a page that has the daemon's own origin, behind one proxy.
func inPage(t *testing.T, d *daemon.Daemon, dist string) {
	t.Helper()
	target, err := url.Parse(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", httputil.NewSingleHostReverseProxy(target)) // keeps the Host of the page
	mux.Handle("/client/", http.StripPrefix("/client/", http.FileServer(http.Dir(dist))))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/html") })
	site := httptest.NewServer(mux)
	defer site.Close()
	s := create(t, d, body{"engine": browser.EngineShell})
	const run = `(async () => {
		const { Stasis, StasisError } = await import('/client/stasis.js');
		const stasis = new Stasis({ url: location.origin, key: '` + daemon.Key + `' });
		const made = await stasis.create({ engine: 'shell', labels: { from: 'a page' } });
		const { deleted } = await made.end();
		const error = await stasis.get('no-such-session').catch((error) => error);
		return [made.info.labels.from, deleted, error instanceof StasisError && error.code].join(', ');
	})()`
	out := drive(t, chromeDP, s.CDP, visit(site.URL+"/"), evaluate(run))
	if got := text(t, out[len(out)-1]); got != "a page, true, session_not_found" {
		t.Errorf("in a page: %s", got)
	}
	d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/"+s.ID, nil)
}

// The generated types are those of openapi.yaml.
func TestTypeScriptTypes(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "api.ts")
	nodeIn(t, nil, "../clients/typescript", "node_modules/openapi-typescript/bin/cli.js", "../../openapi.yaml", "--default-non-nullable", "false", "-o", out)
	made, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../clients/typescript/src/api.ts")
	if err != nil {
		t.Fatal(err)
	}
	if string(made) != string(kept) {
		t.Error("clients/typescript/src/api.ts is not that of openapi.yaml: run make types")
	}
}

// installedClient returns a project in which the client and Playwright are installed, as npm would
// install them.
func installedClient(t *testing.T) string {
	t.Helper()
	source, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"package.json", "tsconfig.json", "src"} {
		at := filepath.Join("../clients/typescript", name)
		info, err := os.Stat(at)
		if err == nil && info.IsDir() {
			err = os.CopyFS(filepath.Join(source, name), os.DirFS(at))
		} else if err == nil {
			var raw []byte
			if raw, err = os.ReadFile(at); err == nil {
				err = os.WriteFile(filepath.Join(source, name), raw, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		to, err := filepath.Abs(to)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	link("../clients/typescript/node_modules", filepath.Join(source, "node_modules"))
	cmd := exec.CommandContext(t.Context(), "npm", "pack", "--offline", "--loglevel=error", "--pack-destination", dir)
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm pack: %v\n%s", err, out)
	}
	project := filepath.Join(dir, "project")
	client := filepath.Join(project, "node_modules", "stasis-client")
	if err := os.MkdirAll(client, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(dir, "stasis-client-0.1.0.tgz"), "-C", client, "--strip-components=1").CombinedOutput(); err != nil { //nolint:gosec // the test's own folder
		t.Fatalf("tar: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(project, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	link("clients/node_modules", filepath.Join(dir, "node_modules")) // found above the project
	link("../clients/typescript/node_modules/typescript/bin/tsc", filepath.Join(project, "node_modules", ".tsc"))
	link("clients/node_modules/@types", filepath.Join(project, "node_modules", "@types"))
	return project
}

// nodeIn runs Node in a folder, with the daemon's address and key if there is one, and
// returns what it prints.
func nodeIn(t *testing.T, d *daemon.Daemon, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = dir
	cmd.Env = os.Environ()
	if d != nil {
		cmd.Env = append(cmd.Env, "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node %v: %v\n%s", args, err, out)
	}
	return string(out)
}
