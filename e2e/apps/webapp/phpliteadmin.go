package webapp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// phpLiteAdmin is the single file of Debian's phpliteadmin package. It reads a
// configuration file in the same folder.
const phpLiteAdmin = "/usr/share/phpliteadmin/phpliteadmin.php"

// StartPHPLiteAdmin starts Debian's phpLiteAdmin in PHP's built-in server, with its
// files in the empty folder dir. It has a password and no user names. With "Remember
// me", the login form sets two persistent cookies, which are valid without PHP's
// session.
func StartPHPLiteAdmin(dir string) (*App, error) {
	app := &App{Password: "lite-pass-1815"}
	root, sessions := filepath.Join(dir, "root"), filepath.Join(dir, "sessions")
	for _, d := range []string{root, sessions} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, err
		}
	}
	script, err := os.ReadFile(phpLiteAdmin)
	if err != nil {
		return nil, fmt.Errorf("%w (make test installs it)", err)
	}
	for name, text := range map[string][]byte{
		"index.php": script,
		"phpliteadmin.config.php": fmt.Appendf(nil, "<?php\n$password = '%s';\n$directory = false;\n"+
			"$databases = array(array('path' => '%s', 'name' => 'members'));\n", app.Password, filepath.Join(dir, "members.db")),
	} {
		if err := os.WriteFile(filepath.Join(root, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return app, app.serve("phpliteadmin", "/", func(port int) *exec.Cmd { return php(port, root, sessions) })
}
