package apps

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// Where Debian's dokuwiki package lives.
const (
	dokuwikiRoot = "/usr/share/dokuwiki"
	dokuwikiConf = "/etc/dokuwiki"
)

// StartDokuWiki starts Debian's DokuWiki under PHP's built-in server. Only its
// account may read it. The login form, sent without "remember me", leaves
// nothing but session cookies in the browser: one names the session that PHP
// keeps on the server's side, and the login is valid only with it.
func StartDokuWiki(t testing.TB) *App {
	t.Helper()
	app := &App{User: "ada", Password: "wiki-pass-1843"}
	dir := t.TempDir()
	conf, data := filepath.Join(dir, "conf"), filepath.Join(dir, "data")
	sessions := filepath.Join(dir, "sessions")
	for _, d := range []string{conf, data, sessions} {
		must(t, os.Mkdir(d, 0o700))
	}
	seedDokuWikiConf(t, conf, data, app)
	seedDokuWikiData(t, data)

	// DokuWiki asks whether DOKU_CONF is defined before it looks in /etc.
	prepend := filepath.Join(dir, "prepend.php")
	must(t, os.WriteFile(prepend, fmt.Appendf(nil, "<?php define('DOKU_CONF', '%s/');\n", conf), 0o600))
	backend := serve(t, "dokuwiki", "/doku.php", func(port int) *exec.Cmd {
		return exec.Command("php",
			"-d", "auto_prepend_file="+prepend,
			"-d", "session.save_path="+sessions,
			"-d", "session.gc_probability=0",
			"-S", fmt.Sprintf("127.0.0.1:%d", port), "-t", dokuwikiRoot)
	})
	app.URL, app.Log = front(t, backend)
	return app
}

// seedDokuWikiConf copies the package's settings and lays the test's own over
// them: where the data is, who may log in, and that nobody else may read.
func seedDokuWikiConf(t testing.TB, conf, data string, app *App) {
	t.Helper()
	entries, err := os.ReadDir(dokuwikiConf)
	must(t, err)
	for _, e := range entries {
		if !e.Type().IsRegular() { // the links lead to the machine's own accounts
			continue
		}
		b, err := os.ReadFile(filepath.Join(dokuwikiConf, e.Name()))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(conf, e.Name()), b, 0o600))
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(app.Password), bcrypt.MinCost)
	must(t, err)
	files := map[string]string{
		"local.php": fmt.Sprintf("<?php\n$conf['title'] = 'Wiki';\n$conf['useacl'] = 1;\n"+
			"$conf['superuser'] = '@admin';\n$conf['savedir'] = '%s';\n"+
			"$conf['updatecheck'] = 0;\n$conf['disableactions'] = 'register';\n", data),
		"users.auth.php": fmt.Sprintf("# <?php exit()?>\n%s:%s:Ada Lovelace:ada@example.org:user\n", app.User, hash),
		"acl.auth.php":   "# <?php exit()?>\n* @ALL 0\n* @user 8\n",
	}
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(conf, name), []byte(text), 0o600))
	}
}

// seedDokuWikiData makes the folders that DokuWiki insists on and a front page.
func seedDokuWikiData(t testing.TB, data string) {
	t.Helper()
	for _, name := range []string{
		"attic", "cache", "index", "locks", "log", "media", "media_attic", "media_meta", "meta", "pages", "tmp",
	} {
		must(t, os.Mkdir(filepath.Join(data, name), 0o700))
	}
	page := filepath.Join(data, "pages", "start.txt")
	must(t, os.WriteFile(page, []byte("====== Members only ======\nYou are in.\n"), 0o600))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("apps: %v", err)
	}
}
