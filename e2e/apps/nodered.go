package apps

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// StartNodeRED starts Node-RED's editor behind its own login (adminAuth). The
// form's answer is a bearer token that the editor keeps in localStorage, under
// "auth-tokens"; no cookie takes part.
func StartNodeRED(t testing.TB) *App {
	t.Helper()
	app := &App{User: "grace", Password: "flow-pass-1952"}
	hash, err := bcrypt.GenerateFromPassword([]byte(app.Password), bcrypt.MinCost)
	must(t, err)
	dir := t.TempDir()
	settings, err := json.Marshal(map[string]any{
		"uiHost":  "127.0.0.1",
		"userDir": dir,
		"adminAuth": map[string]any{
			"type":  "credentials",
			"users": []map[string]string{{"username": app.User, "password": string(hash), "permissions": "*"}},
		},
		// Nothing here may reach out: no palette, no news, no statistics.
		"externalModules": map[string]any{"palette": map[string]bool{"allowInstall": false}},
		"telemetry":       map[string]any{"enabled": false, "updateNotification": false},
		"editorTheme":     map[string]any{"tours": false, "projects": map[string]bool{"enabled": false}},
		"logging":         map[string]any{"console": map[string]any{"level": "warn"}},
	})
	must(t, err)
	file := filepath.Join(dir, "settings.js")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "module.exports = %s;\n", settings), 0o600))

	script := nodeREDScript(t)
	backend := serve(t, "node-red", "/auth/login", func(port int) *exec.Cmd {
		return exec.Command("node", script, "--settings", file, "--port", strconv.Itoa(port))
	})
	app.URL, app.Log = front(t, backend)
	return app
}

// nodeREDScript is Node-RED's entry point among the clients' modules, which
// lie beside this package.
func nodeREDScript(t testing.TB) string {
	t.Helper()
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("apps: the source folder is not known")
	}
	return filepath.Join(filepath.Dir(here), "..", "clients", "node_modules", "node-red", "red.js")
}
