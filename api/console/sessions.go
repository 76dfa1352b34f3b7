package console

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stasisd/stasis/client"
)

// sessionsPage is what the list of sessions shows.
type sessionsPage struct {
	UserID string // only this user's; "" is all
	Live   []sessionAnswer
	Ended  []sessionAnswer
	After  string // the page is not the first
	Next   string // start of the next page
	// Missing are the nodes that have not answered for their live sessions.
	Missing []string
}

// listSessions shows the live sessions, and a page of those that have ended.
func listSessions(v *visit) error {
	data := sessionsPage{UserID: v.query("user_id"), After: v.query("after")}
	user := ""
	if data.UserID != "" {
		user = "&" + url.Values{"user_id": {data.UserID}}.Encode()
	}
	if data.After == "" {
		for _, status := range []string{"ready", "running", "paused"} {
			var some []sessionAnswer
			header, err := v.api.get("/v1/sessions?limit=1000&status="+status+user, &some)
			if err != nil {
				return err
			}
			if nodes := header.Get("X-Missing-Nodes"); nodes != "" {
				data.Missing = append(data.Missing, strings.Split(nodes, ", ")...)
			}
			data.Live = append(data.Live, some...)
		}
		slices.SortFunc(data.Live, newestFirst)
		slices.Sort(data.Missing)
		data.Missing = slices.Compact(data.Missing)
	} else {
		user += "&start_after=" + url.QueryEscape(data.After)
	}
	var all []sessionAnswer
	header, err := v.api.get("/v1/sessions?limit=50"+user, &all)
	if err != nil {
		return err
	}
	data.Next = header.Get("X-Next-Token")
	for _, s := range all {
		if !s.Live() {
			data.Ended = append(data.Ended, s)
		}
	}
	return v.render("sessions", page{Title: "Sessions", Section: "sessions", Data: data})
}

// newestFirst orders sessions by their start.
func newestFirst(a, b sessionAnswer) int {
	return b.CreatedAt.Compare(a.CreatedAt)
}

// sessionPicture is a picture of the session's front tab.
func sessionPicture(v *visit) error {
	var shot struct{ Screenshot string }
	if _, err := v.api.get("/v1/sessions"+joinPath(v.r.PathValue("id"))+"/screenshot", &shot); err != nil {
		return err
	}
	jpeg, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(shot.Screenshot, "data:image/jpeg;base64,"))
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "image/jpeg")
	_, _ = v.w.Write(jpeg) // if it fails, the person has left
	return nil
}

// endSession ends a session and saves it as the form says.
func endSession(v *visit) error {
	form, err := v.form()
	if err != nil {
		return err
	}
	query := ""
	switch form.Get("save") {
	case "filesystem", "memory":
		query = "?save_snapshot_mode=" + form.Get("save")
	case "default":
		query = "?save_snapshot_mode=filesystem&save_as_default=true"
	case "default-overwrite":
		query = "?save_snapshot_mode=filesystem&save_as_default=true&default_conflict=overwrite"
	}
	id := v.r.PathValue("id")
	var ended client.EndResult
	if _, err := v.api.send(http.MethodDelete, "/v1/sessions"+joinPath(id)+query, nil, &ended); err != nil {
		return err
	}
	return v.done(endText(ended), "sessions", id)
}

// endText says what an end did.
func endText(e client.EndResult) string {
	switch {
	case e.Default != nil && e.Default.Moved:
		return "The session has ended. It is the user's default environment now."
	case e.Default != nil:
		return "The session has ended and is saved. It did not become the default: " + e.Default.Reason + "."
	case e.Snapshot != nil:
		return "The session has ended and is saved."
	default:
		return "The session has ended. Nothing was saved."
	}
}
