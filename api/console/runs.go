package console

import (
	"net/url"
	"slices"
	"time"
)

type eventAnswer struct {
	Sequence  int64          `json:"sequence"`
	Type      string         `json:"type"`
	Timestamp *time.Time     `json:"timestamp"`
	Data      map[string]any `json:"data"`
	Text      string         `json:"text"`
}

// Fields returns the data that the timeline shows as name and value, sorted by name. The rest
// is shown elsewhere in the line.
func (e eventAnswer) Fields() []field {
	var fields []field
	for name, value := range e.Data {
		switch name {
		case "url", "title", "jpeg", "content", "page", "snapshot_id":
			continue
		case "id", "role", "type":
			if e.Type == "message" {
				continue
			}
		case "text":
			if e.Text != "" {
				continue
			}
		}
		if value != nil && value != "" {
			fields = append(fields, field{name, show(value)})
		}
	}
	slices.SortFunc(fields, func(a, b field) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return fields
}

// URL and Title are those of the page that the event is about, or "".
func (e eventAnswer) URL() string { return e.textOf("url") }

// Title returns the title of the page, or the type of a message.
func (e eventAnswer) Title() string {
	if e.Type == "message" {
		return e.textOf("type")
	}
	return e.textOf("title")
}

// SnapshotID returns the snapshot that was saved or restored, or "".
func (e eventAnswer) SnapshotID() string { return e.textOf("snapshot_id") }

func (e eventAnswer) textOf(name string) string {
	text, _ := e.Data[name].(string)
	return text
}

// field is a name with a value.
type field struct{ Name, Value string }

// runPage is a page of a run's timeline.
type runPage struct {
	SessionID string
	Run       runAnswer
	Events    []eventAnswer `json:"events"`
	Gap       bool          `json:"retention_gap"`
	Next      int64         `json:"next_after_sequence"`
	More      bool          `json:"has_more"`
}

// After returns how long after the start of the run an event happened.
func (p runPage) After(e eventAnswer) string {
	if p.Run.StartedAt == nil || e.Timestamp == nil {
		return ""
	}
	return e.Timestamp.Sub(*p.Run.StartedAt).Round(time.Millisecond).String()
}

// showRun shows the timeline of a run.
func showRun(v *visit) error {
	id, run := v.r.PathValue("id"), v.r.PathValue("run")
	path := "/v1/sessions" + joinPath(id) + "/runs"
	var runs struct{ Runs []runAnswer }
	if _, err := v.api.get(path, &runs); err != nil {
		return err
	}
	data := runPage{SessionID: id}
	for _, r := range runs.Runs {
		if r.ID == run {
			data.Run = r
		}
	}
	query := "?limit=200"
	if after := v.query("after"); after != "" {
		query += "&after=" + url.QueryEscape(after)
	}
	if _, err := v.api.get(path+joinPath(run)+"/events"+query, &data); err != nil {
		return err
	}
	return v.render("run", page{Title: "Run", Section: "sessions", Data: data})
}
