package console

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/stasisd/stasis/client"
)

// sessionPage is what the page of one session shows.
type sessionPage struct {
	Session   sessionAnswer
	ByHand    bool // the person logs in by hand
	Snapshots []client.Snapshot
	Runs      []runAnswer
	Messages  []messageAnswer
	More      bool // there are more messages
	Files     []client.File
	Note      *noteAnswer
}

// showSession shows one session, live or ended.
func showSession(v *visit) error {
	path := "/v1/sessions" + joinPath(v.r.PathValue("id"))
	data := sessionPage{ByHand: v.query("login") != ""}
	if _, err := v.api.get(path, &data.Session); err != nil {
		return err
	}
	var snapshots snapshotPage
	var runs struct{ Runs []runAnswer }
	var messages struct {
		Messages []messageAnswer
		HasMore  bool `json:"has_more"`
	}
	var files struct{ Files []client.File }
	var note noteAnswer
	err := firstOf(
		optional(v, path+"/snapshots?limit=20", &snapshots),
		optional(v, path+"/runs", &runs),
		optional(v, path+"/messages", &messages),
		optional(v, path+"/notes", &note),
	)
	if data.Session.Live() && err == nil {
		err = optional(v, path+"/files", &files)
	}
	if err != nil {
		return err
	}
	data.Snapshots, data.Runs, data.Files = snapshots.Snapshots, runs.Runs, files.Files
	data.Messages, data.More = messages.Messages, messages.HasMore
	if note.SessionID != "" {
		data.Note = &note
	}
	p := page{Title: "Session " + data.Session.ID, Section: "sessions", Data: data}
	if data.Session.Live() {
		p.Actions = []action{
			{Label: "Save while it continues", Call: call{method: http.MethodPost, path: path + "/snapshots"}},
			{Label: "End and save as default", Call: call{method: http.MethodDelete, path: path + "?save_snapshot_mode=filesystem&save_as_default=true"}},
			{Label: "End without saving", Call: call{method: http.MethodDelete, path: path}},
		}
	} else {
		p.Actions = []action{
			{Label: "Resume", Call: call{method: http.MethodPost, path: path + "/resume"}},
			{Label: "Restore into a new session", Call: call{method: http.MethodPost, path: "/v1/sessions", body: `{"restore_from_session_id": "` + data.Session.ID + `"}`}},
		}
	}
	return v.render("session", p)
}

// optional is a get whose answer may be missing or not allowed; then out stays empty.
func optional(v *visit, path string, out any) error {
	_, err := v.api.get(path, out)
	var failed *client.Error
	if errors.As(err, &failed) {
		switch failed.Status {
		case http.StatusForbidden, http.StatusNotFound, http.StatusConflict:
			return nil
		}
	}
	return err
}

// firstOf returns the first error.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// saveSession makes a checkpoint.
func saveSession(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	body := map[string]any{}
	if form.Get("label") != "" {
		body["label"] = form.Get("label")
	}
	if form.Get("default") != "" {
		body["save_as_default"] = true
	}
	id := v.r.PathValue("id")
	var saved struct {
		client.EndResult
		Unchanged bool `json:"unchanged"`
	}
	if _, err := v.api.send(http.MethodPost, "/v1/sessions"+joinPath(id)+"/snapshots", body, &saved); err != nil {
		return err
	}
	text := "The session is saved, and continues."
	switch {
	case saved.Default != nil && saved.Default.Moved:
		text = "The session is saved as the user's default environment, and continues."
	case saved.Default != nil:
		text = "The session is saved, and continues. It did not become the default: " + saved.Default.Reason + "."
	case saved.Unchanged:
		text = "Nothing has changed since the last snapshot of the session."
	}
	return v.done(text, "sessions", id)
}

func pauseSession(v *visit) error  { return control(v, "pause") }
func resumeSession(v *visit) error { return control(v, "resume") }

// control pauses or resumes a session.
func control(v *visit, verb string) error {
	id := v.r.PathValue("id")
	var answer struct{ Message string }
	if _, err := v.api.send(http.MethodPost, "/v1/sessions"+joinPath(id)+"/"+verb, nil, &answer); err != nil {
		return err
	}
	return v.done("Done: "+answer.Message+".", "sessions", id)
}

// sendMessage adds a message for the session's agent.
func sendMessage(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	id := v.r.PathValue("id")
	if _, err := v.api.send(http.MethodPost, "/v1/sessions"+joinPath(id)+"/message", map[string]any{"message": form.Get("message")}, nil); err != nil {
		return err
	}
	return v.done("The message is recorded.", "sessions", id)
}

// downloadFile passes one of the session's files on, as an attachment.
func downloadFile(v *visit) error {
	return v.api.download(v.w, "/v1/sessions"+joinPath(v.r.PathValue("id"), "files", v.query("name")))
}

// uploadFile adds a file to the session's files.
func uploadFile(v *visit) error {
	id := v.r.PathValue("id")
	if err := v.api.upload("/v1/sessions" + joinPath(id) + "/files"); err != nil {
		return err
	}
	return v.done("The file is stored. A program can give it to a page by its name.", "sessions", id)
}

// queryOf returns a query with the parameters that are not empty.
func queryOf(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}
