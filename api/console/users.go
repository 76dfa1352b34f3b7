package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

// knownUser is one line of the list of users.
type knownUser struct {
	ID        string
	Live      int       // live sessions among the newest
	Saved     time.Time // the newest snapshot
	Snapshots int       // among the newest
}

// listUsers lists the users that the newest sessions and snapshots name. The API has no list
// of all users.
func listUsers(v *visit) error {
	if id := v.query("user_id"); id != "" {
		http.Redirect(v.w, v.r, v.console.at("user")+queryOf("user_id", id), http.StatusSeeOther)
		return nil
	}
	var sessions []sessionAnswer
	if _, err := v.api.get("/v1/sessions?limit=200", &sessions); err != nil {
		return err
	}
	var snapshots snapshotPage
	if _, err := v.api.get("/v1/snapshots?limit=200", &snapshots); err != nil {
		return err
	}
	users := map[string]*knownUser{}
	user := func(id string) *knownUser {
		if users[id] == nil {
			users[id] = &knownUser{ID: id}
		}
		return users[id]
	}
	user(v.login.user)
	for _, s := range sessions {
		if u := user(s.UserID); s.Live() {
			u.Live++
		}
	}
	for _, s := range snapshots.Snapshots {
		u := user(s.UserID)
		u.Snapshots++
		if u.Saved.IsZero() { // they are sorted, newest first
			u.Saved = s.CreatedAt
		}
	}
	var list []*knownUser
	for _, u := range users {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b *knownUser) int { return strings.Compare(a.ID, b.ID) })
	return v.render("users", page{Title: "Users", Section: "users", Data: list})
}

// checkText says what a check found.
func checkText(o client.LoginOutcome) string {
	switch {
	case o.Error != "":
		return "The check has no result: " + o.Error
	case o.LoggedIn:
		return "The default is logged in."
	default:
		return "The default is logged out."
	}
}

type settingsAnswer struct {
	LoginCheck *client.LoginCheck `json:"login_check"`
}

// userPage is what the page of one user shows.
type userPage struct {
	ID       string
	Settings settingsAnswer
	Default  *client.Default
	Snapshot *client.Snapshot // of the default
	History  []client.Default
}

// showUser shows a user's default environment, its history and the settings.
func showUser(v *visit) error {
	id := v.query("user_id")
	path := "/v1/users" + joinPath(id)
	data := userPage{ID: id}
	if _, err := v.api.get(path, &data.Settings); err != nil {
		return err
	}
	var current client.Default
	var history struct{ History []client.Default }
	if err := firstOf(optional(v, path+"/default", &current), optional(v, path+"/default/history?limit=20", &history)); err != nil {
		return err
	}
	data.History = history.History
	if current.SnapshotID != "" {
		data.Default = &current
		var s client.Snapshot
		if err := optional(v, "/v1/snapshots"+joinPath(current.SnapshotID), &s); err != nil {
			return err
		}
		if s.ID != "" {
			data.Snapshot = &s
		}
	}
	return v.render("user", page{Title: "User " + id, Section: "users", Data: data, Actions: []action{
		{Label: "Restore the default in a new session", Call: restoreCall(id)},
		{Label: "Check the login", Call: call{method: http.MethodPost, path: path + "/default/check"}},
		{Label: "Go back to another snapshot", Call: call{method: http.MethodPut, path: path + "/default", body: `{"snapshot_id": "…"}`}},
	}})
}

// restoreCall is the create that restores a user's default.
func restoreCall(userID string) call {
	body, err := encode(map[string]string{"restore_default_environment_from_user_id": userID})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return call{method: http.MethodPost, path: "/v1/sessions", body: string(body)}
}

// userPath returns the path of the API for the user of the request, and the path of the page.
func (v *visit) userPath() (api, back string) {
	id := v.query("user_id")
	return "/v1/users" + joinPath(id), v.console.at("user") + queryOf("user_id", id)
}

// checkUser checks whether the default is still logged in.
func checkUser(v *visit) error {
	path, back := v.userPath()
	var o client.LoginOutcome
	if _, err := v.api.send(http.MethodPost, path+"/default/check", nil, &o); err != nil {
		return err
	}
	return v.doneAt(checkText(o), back)
}

// setDefault makes another snapshot the default.
func setDefault(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	path, back := v.userPath()
	body := map[string]any{"snapshot_id": form.Get("snapshot_id")}
	if version, err := strconv.ParseInt(form.Get("if_version"), 10, 64); err == nil {
		body["if_version"] = version
	}
	var now client.Default
	if _, err := v.api.send(http.MethodPut, path+"/default", body, &now); err != nil {
		return err
	}
	return v.doneAt("The default is version "+strconv.FormatInt(now.Version, 10)+" now.", back)
}

// askRemoveDefault asks before a default is removed.
func askRemoveDefault(v *visit) error {
	id := v.query("user_id")
	_, back := v.userPath()
	return v.render("confirm", page{Title: "Remove the default", Section: "users", Data: confirmation{
		Question: "Remove the default environment of " + id + "?",
		Effect:   "Its snapshots and its history stay, and you can make one of them the default again.",
		Action:   v.console.at("user", "default", "remove") + queryOf("user_id", id), Button: "Remove", Back: back,
	}})
}

func removeDefault(v *visit) error {
	path, back := v.userPath()
	if _, err := v.api.send(http.MethodDelete, path+"/default", nil, nil); err != nil {
		return err
	}
	return v.doneAt("The default is removed.", back)
}

// setLoginCheck replaces the user's login check. Without a URL it removes it.
func setLoginCheck(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	path, back := v.userPath()
	body := map[string]any{"login_check": nil}
	if form.Get("url") != "" {
		check, err := loginCheck(form)
		if err != nil {
			return err
		}
		body["login_check"] = check
	}
	if _, err := v.api.send(http.MethodPatch, path, body, nil); err != nil {
		return err
	}
	return v.doneAt("The login check is set.", back)
}

// loginCheck returns the patch of a check. null removes what the form leaves empty.
func loginCheck(form url.Values) (map[string]any, error) {
	check := map[string]any{"url": strings.TrimSpace(form.Get("url")), "before_default": form.Get("before_default") != ""}
	for _, name := range []string{"text", "selector"} {
		check[name] = nil
		if form.Get(name) != "" {
			check[name] = form.Get(name)
		}
	}
	check["check_every_seconds"] = nil
	if every := strings.TrimSpace(form.Get("check_every_seconds")); every != "" {
		n, err := strconv.ParseInt(every, 10, 64)
		if err != nil {
			return nil, &client.Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: "check_every_seconds: must be a whole number"}
		}
		check["check_every_seconds"] = n
	}
	return check, nil
}

// logInByHand starts a session for a person who logs in: in the user's environment, or in an
// empty one if there is none.
func logInByHand(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	id := v.query("user_id")
	create := url.Values{"user_id": {id}, "start_url": {form.Get("start_url")}, "idle_timeout_seconds": {"3600"}}
	if form.Get("fresh") == "" {
		create.Set("restore", "default")
		create.Set("if_missing", "fresh")
	}
	body, err := createBody(create)
	if err != nil {
		return err
	}
	var s sessionAnswer
	if _, err := v.api.send(http.MethodPost, "/v1/sessions", body, &s); err != nil {
		return err
	}
	if s.ControlURL == "" {
		_, err := v.api.send(http.MethodDelete, "/v1/sessions"+joinPath(s.ID), nil, nil)
		return errors.Join(&client.Error{Status: http.StatusForbidden, Code: "forbidden", Message: "your key may not drive sessions of " + id}, err)
	}
	return v.doneAt("The session runs.", v.console.at("sessions", s.ID)+"?login=1")
}

// confirmation is a question before something is deleted.
type confirmation struct {
	Question, Effect, Action, Button, Back string
}
