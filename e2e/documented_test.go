package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// The blocks of docs/selenium.md log in with Selenium, and its tests start logged in.
func seleniumPage(t *testing.T, d *daemon.Daemon) {
	p := newPageRun(t, d, "../docs/selenium.md", "selenium")
	if err := os.Symlink(p.repository, filepath.Join(p.dir, "stasis")); err != nil {
		t.Fatal(err)
	}
	out := p.run(t)
	if strings.Count(out, "Hello, Ada, you are logged in\n") != 1 || !strings.Contains(out, "Ran 2 tests") || strings.Count(out, "site: a user logged in") != 1 {
		t.Errorf("the page's blocks print:\n%s", out)
	}
}

// The blocks of docs/from-storage-state.md bring a storageState, a cookie file and a desktop
// profile, each of which is logged in, and take the first two back. The short form leaves out
// the desktop profile, as TestDesktopProfile imports one.
func storageStatePage(t *testing.T, d *daemon.Daemon) {
	p := newPageRun(t, d, "../docs/from-storage-state.md", "states")
	folder := filepath.Join(p.dir, "examples", "quickstart")
	if err := os.CopyFS(folder, os.DirFS("../examples/quickstart")); err != nil {
		t.Fatal(err)
	}
	p.folder = folder
	// Playwright's own Chrome may be the headless shell, which starts with half of the work.
	for name, text := range p.scripts {
		p.scripts[name] = strings.Replace(text, "'/usr/bin/chromium'", "'/usr/lib/chromium/chromium-headless-shell'", 1)
	}
	// The person's own Chrome, who has logged in.
	p.scripts["desktop.mjs"] = `
import { chromium } from 'playwright-core';
const context = await chromium.launchPersistentContext(process.env.HOME + '/.config/chromium', { executablePath: '/usr/bin/chromium', args: ['--password-store=basic'] });
const page = context.pages()[0];
await page.goto(` + "`http://127.0.0.1:${process.env.PORT}/`" + `);
await page.fill('[name=user]', 'carol');
await page.click('button');
await page.waitForSelector('h1');
await context.close();
`
	greetings, logins := 5, 3
	if desktop := desktopBlock.FindString(p.shell); storetest.Long() {
		p.shell = strings.Replace(p.shell, desktop, "node desktop.mjs\n"+desktop, 1)
	} else {
		p.shell = strings.Replace(p.shell, desktop, "", 1)
		greetings, logins = greetings-1, logins-1
	}
	out := p.run(t)
	if strings.Count(out, "Hello, Ada, you are logged in") != greetings || strings.Count(out, "site: a user logged in") != logins {
		t.Errorf("the page's blocks print:\n%s", out)
	}
}

// pageRun is a page of which all blocks run as they are written, in a separate home. Only
// the daemon's and the site's addresses and the users' names differ.
type pageRun struct {
	repository, dir string
	folder          string            // for the scripts; dir if it is empty
	scripts         map[string]string // blocks whose first line is a comment with a file's name
	shell           string            // all other blocks
	env             []string
}

var (
	fencedBlock = regexp.MustCompile("(?ms)^```(sh|js|python)\n(.*?)^```$")
	// desktopBlock packs and restores a desktop profile.
	desktopBlock = regexp.MustCompile(`(?s)tar -C ~/\.config.*?stasis session end [^\n]*\n`)
	fileComment  = regexp.MustCompile(`\A(?:#|//) (\w[\w-]*\.(?:py|mjs))\n`)
)

// newPageRun reads a page. The users that its blocks name get names of this test alone, and
// the headless shell.
func newPageRun(t *testing.T, d *daemon.Daemon, page, name string) *pageRun {
	t.Helper()
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	p := &pageRun{repository: repository, dir: t.TempDir(), scripts: map[string]string{}}
	own := []string{"http://127.0.0.1:8080", d.URL, "127.0.0.1:8090", "127.0.0.1:" + port}
	for _, user := range []string{"ada", "bob", "carol"} {
		d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/"+user+"-"+name, body{"engine": browser.EngineShell})
		mine := user + "-" + name
		own = append(own, `user="`+user+`"`, `user="`+mine+`"`, "--user "+user, "--user "+mine, "--default-of "+user, "--default-of "+mine, "/users/"+user, "/users/"+mine)
	}
	text := strings.NewReplacer(own...).Replace(textOf(t, page))
	for _, block := range fencedBlock.FindAllStringSubmatch(text, -1) {
		if file := fileComment.FindStringSubmatch(block[2]); file != nil {
			p.scripts[file[1]] = block[2]
		} else {
			p.shell += block[2]
		}
	}
	for name, program := range map[string]string{
		"sudo":   "#!/bin/sh\n", // installs what tests have
		"npm":    "#!/bin/sh\n[ \"$*\" = install ] && ln -sfn " + repository + "/e2e/clients/node_modules node_modules\n",
		"stasis": "#!/bin/sh\nexec " + daemon.Binary(t) + " \"$@\"\n",
	} {
		p.write(t, filepath.Join("bin", name), program)
	}
	p.write(t, "home/.local/share/stasis/api-key", daemon.Key+"\n")
	p.env = append(os.Environ(), "HOME="+filepath.Join(p.dir, "home"), "PATH="+filepath.Join(p.dir, "bin")+":/usr/bin:"+os.Getenv("PATH"),
		"PORT="+port, "PYTHONDONTWRITEBYTECODE=1")
	return p
}

// run runs the blocks and returns what they print.
func (p *pageRun) run(t *testing.T) string {
	t.Helper()
	if p.folder == "" {
		p.folder = p.dir
	}
	for name, text := range p.scripts {
		if err := os.WriteFile(filepath.Join(p.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), suiteDeadline)
	defer cancel()
	// At the end, bash ends the site that the page leaves running.
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", "trap 'kill $(jobs -p)' EXIT\n"+awaitSite(p.shell)) //nolint:gosec // the project's own page
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the site too
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// awaitSite has the commands of a page go on only when the site that they start listens. A reader who
// pastes them is slower than that.
func awaitSite(shell string) string {
	return strings.ReplaceAll(shell, "site.mjs &", "site.mjs & until (: < /dev/tcp/127.0.0.1/$PORT) 2> /dev/null; do kill -0 $!; sleep 0.1; done;")
}

// write writes an executable file below the folder of the run.
func (p *pageRun) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil { //nolint:gosec // some are programs
		t.Fatal(err)
	}
}
