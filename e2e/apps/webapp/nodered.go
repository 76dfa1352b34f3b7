package webapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/crypto/bcrypt"
)

// StartNodeRED starts Node-RED's editor with its own login (adminAuth), with its files
// in the empty folder dir. The login returns a bearer token, which the editor stores in
// localStorage under "auth-tokens". It uses no cookie.
func StartNodeRED(dir string) (*App, error) {
	app := &App{User: "grace", Password: "flow-pass-1952"}
	hash, err := bcrypt.GenerateFromPassword([]byte(app.Password), bcrypt.MinCost)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(map[string]any{
		"uiHost":  "127.0.0.1",
		"userDir": dir,
		"adminAuth": map[string]any{
			"type":  "credentials",
			"users": []map[string]string{{"username": app.User, "password": string(hash), "permissions": "*"}},
		},
		// Nothing here may use the network: no palette, no news, no statistics.
		"externalModules": map[string]any{"palette": map[string]bool{"allowInstall": false}},
		"telemetry":       map[string]any{"enabled": false, "updateNotification": false},
		"editorTheme":     map[string]any{"tours": false, "projects": map[string]bool{"enabled": false}},
		"logging":         map[string]any{"console": map[string]any{"level": "warn"}},
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "settings.js")
	if err := os.WriteFile(file, fmt.Appendf(nil, "module.exports = %s;\n", settings), 0o600); err != nil {
		return nil, err
	}
	script, err := nodeREDScript()
	if err != nil {
		return nil, err
	}
	return app, app.serve("node-red", "/auth/login", func(port int) *exec.Cmd {
		return exec.Command("node", script, "--settings", file, "--port", strconv.Itoa(port))
	})
}

// nodeREDScript returns Node-RED's entry point among the clients' modules, which are two
// folders above this package.
func nodeREDScript() (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("cannot find the folder of this source file")
	}
	return filepath.Join(filepath.Dir(here), "..", "..", "clients", "node_modules", "node-red", "red.js"), nil
}
