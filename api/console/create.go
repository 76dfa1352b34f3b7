package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/client"
)

// createForm is the form of a new session, as the person filled it in.
type createForm struct {
	Values url.Values
	Once   string // makes a second click harmless
	Error  *client.Error
}

// newSession shows the form. The query fills it in.
func newSession(v *visit) error {
	return showCreate(v, v.r.URL.Query(), nil)
}

func showCreate(v *visit, values url.Values, failed *client.Error) error {
	status := http.StatusOK
	if failed != nil {
		status = failed.Status
	}
	v.write(status, "create", page{Title: "New session", Section: "sessions", Data: createForm{values, rand.Text(), failed}, Actions: []action{
		{Label: "Create a fresh session", Call: call{method: http.MethodPost, path: "/v1/sessions", body: `{"start_url": "https://example.com/"}`}},
		{Label: "Restore a user's default", Call: call{method: http.MethodPost, path: "/v1/sessions", body: `{"restore_default_environment_from_user_id": "alice"}`}},
	}})
	return nil
}

// createSession creates a session and shows it. If that fails, it shows the form again.
func createSession(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	body, err := createBody(form)
	if err != nil {
		return err
	}
	var headers []string
	if once := form.Get("once"); once != "" {
		headers = append(headers, "Idempotency-Key", once)
	}
	var s sessionAnswer
	_, err = v.api.send(http.MethodPost, "/v1/sessions", body, &s, headers...)
	var failed *client.Error
	switch {
	case err == nil && form.Get("login") != "":
		return v.doneAt("The session runs.", v.console.at("sessions", s.ID)+"?login=1")
	case err == nil:
		return v.done("The session runs.", "sessions", s.ID)
	case errors.As(err, &failed) && failed.Status != http.StatusUnauthorized:
		return showCreate(v, form, failed)
	default:
		return err
	}
}

// createBody returns the body of a create. Fields that were left empty are not in it.
func createBody(form url.Values) (map[string]any, error) {
	body := map[string]any{}
	for _, name := range []string{"user_id", "start_url", "engine", "on_timeout", "on_live"} {
		if text := strings.TrimSpace(form.Get(name)); text != "" {
			body[name] = text
		}
	}
	if start, ok := body["start_url"].(string); ok && !hasScheme(start) {
		body["start_url"] = schemeOf(start) + start
	}
	source := strings.TrimSpace(form.Get("source"))
	switch form.Get("restore") {
	case "default":
		if source == "" {
			source = strings.TrimSpace(form.Get("user_id"))
		}
		body["restore_default_environment_from_user_id"] = source
	case "environment":
		body["restore_from_environment_id"] = source
	}
	if form.Get("if_missing") != "" {
		body["if_missing"] = form.Get("if_missing")
	}
	for _, name := range []string{"idle_timeout_seconds", "max_lifetime_seconds"} {
		text := strings.TrimSpace(form.Get(name))
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, &client.Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: name + ": must be a whole number"}
		}
		body[name] = n
	}
	for _, name := range []string{"persist", "read_only", "auto_save", "passkeys"} {
		if form.Get(name) != "" {
			body[name] = true
		}
	}
	if form.Get("record") != "" {
		body["record"] = []string{"screenshot"}
	}
	return body, nil
}

// ownMachine matches the start of an address whose server is on the daemon's machine. Such a
// server rarely has a certificate.
var ownMachine = regexp.MustCompile(`^(?i:localhost|127\.[0-9.]+|\[::1\])(?::|/|$)`)

// schemeOf returns the scheme of an address that has none.
func schemeOf(address string) string {
	if ownMachine.MatchString(address) {
		return "http://"
	}
	return "https://"
}

// hasScheme reports whether an address is complete: people type addresses without https.
func hasScheme(address string) bool {
	return strings.Contains(address, "://") || strings.HasPrefix(address, "about:") || strings.HasPrefix(address, "data:")
}
