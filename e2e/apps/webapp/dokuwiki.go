package webapp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/crypto/bcrypt"
)

// Paths of Debian's dokuwiki package.
const (
	dokuwikiRoot = "/usr/share/dokuwiki"
	dokuwikiConf = "/etc/dokuwiki"
)

// StartDokuWiki starts Debian's DokuWiki in PHP's built-in server, with its files in the
// empty folder dir. Only its account may read it. Without "remember me", the login form
// sets only session cookies. One of them names the session that PHP stores on the
// server, without which the login is not valid.
func StartDokuWiki(dir string) (*App, error) {
	app := &App{User: "ada", Password: "wiki-pass-1843"}
	conf, data := filepath.Join(dir, "conf"), filepath.Join(dir, "data")
	sessions := filepath.Join(dir, "sessions")
	for _, d := range []string{conf, data, sessions} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	if err := seedDokuWikiConf(conf, data, app); err != nil {
		return nil, err
	}
	if err := seedDokuWikiData(data); err != nil {
		return nil, err
	}
	// DokuWiki looks for its settings in /etc only if DOKU_CONF is not defined.
	prepend := filepath.Join(dir, "prepend.php")
	if err := os.WriteFile(prepend, fmt.Appendf(nil, "<?php define('DOKU_CONF', '%s/');\n", conf), 0o600); err != nil {
		return nil, err
	}
	return app, app.serve("dokuwiki", "/doku.php", func(port int) *exec.Cmd {
		return php(port, dokuwikiRoot, sessions, "auto_prepend_file="+prepend)
	})
}

// php serves the folder root with PHP's built-in server. PHP stores its sessions in
// another folder.
func php(port int, root, sessions string, settings ...string) *exec.Cmd {
	args := []string{"-S", fmt.Sprintf("127.0.0.1:%d", port), "-t", root}
	for _, setting := range append(settings, "session.save_path="+sessions, "session.gc_probability=0") {
		args = append(args, "-d", setting)
	}
	return exec.Command("php", args...)
}

// seedDokuWikiConf copies the package's settings and overwrites some: the data folder,
// the account, and who may read.
func seedDokuWikiConf(conf, data string, app *App) error {
	entries, err := os.ReadDir(dokuwikiConf)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() { // the symbolic links point to the machine's own accounts
			continue
		}
		b, err := os.ReadFile(filepath.Join(dokuwikiConf, e.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(conf, e.Name()), b, 0o600); err != nil {
			return err
		}
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(app.Password), bcrypt.MinCost)
	if err != nil {
		return err
	}
	files := map[string]string{
		"local.php": fmt.Sprintf("<?php\n$conf['title'] = 'Wiki';\n$conf['useacl'] = 1;\n"+
			"$conf['superuser'] = '@admin';\n$conf['savedir'] = '%s';\n"+
			"$conf['updatecheck'] = 0;\n$conf['disableactions'] = 'register';\n", data),
		"users.auth.php": fmt.Sprintf("# <?php exit()?>\n%s:%s:Ada Lovelace:ada@example.org:user\n", app.User, hash),
		"acl.auth.php":   "# <?php exit()?>\n* @ALL 0\n* @user 8\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// seedDokuWikiData makes the folders that DokuWiki requires, and a front page.
func seedDokuWikiData(data string) error {
	for _, name := range []string{
		"attic", "cache", "index", "locks", "log", "media", "media_attic", "media_meta", "meta", "pages", "tmp",
	} {
		if err := os.Mkdir(filepath.Join(data, name), 0o700); err != nil {
			return err
		}
	}
	page := filepath.Join(data, "pages", "start.txt")
	return os.WriteFile(page, []byte("====== Members only ======\nYou are in.\n"), 0o600)
}
