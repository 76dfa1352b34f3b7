package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stasisd/stasis/client"
)

// snapshotsPage is a page of the list of snapshots.
type snapshotsPage struct {
	UserID    string // only this user's; "" is all
	Snapshots []client.Snapshot
	Next      string
}

func listSnapshots(v *visit) error {
	data := snapshotsPage{UserID: v.query("user_id")}
	var answer snapshotPage
	if _, err := v.api.get("/v1/snapshots"+queryOf("limit", "50", "user_id", data.UserID, "start_after", v.query("after")), &answer); err != nil {
		return err
	}
	data.Snapshots, data.Next = answer.Snapshots, answer.NextToken
	return v.render("snapshots", page{Title: "Snapshots", Section: "snapshots", Data: data})
}

// snapshotView is what the page of one snapshot shows.
type snapshotView struct {
	Snapshot client.Snapshot
	Default  client.Default  // the user's, perhaps of another snapshot
	Others   []otherSnapshot // of the same user, newest first
}

// otherSnapshot is a snapshot beside the one that a page shows.
type otherSnapshot struct {
	client.Snapshot
	Newer bool // than the one that the page shows
}

func showSnapshot(v *visit) error {
	id := v.r.PathValue("id")
	path := "/v1/snapshots" + joinPath(id)
	var data snapshotView
	if _, err := v.api.get(path, &data.Snapshot); err != nil {
		return err
	}
	slices.SortStableFunc(data.Snapshot.Components, func(a, b client.Component) int { return strings.Compare(a.Origin, b.Origin) })
	var others snapshotPage
	if err := firstOf(
		optional(v, "/v1/users"+joinPath(data.Snapshot.UserID)+"/default", &data.Default),
		optional(v, "/v1/snapshots"+queryOf("limit", "30", "user_id", data.Snapshot.UserID), &others),
	); err != nil {
		return err
	}
	for _, s := range others.Snapshots {
		if s.ID != id {
			data.Others = append(data.Others, otherSnapshot{s, s.CreatedAt.After(data.Snapshot.CreatedAt)})
		}
	}
	return v.render("snapshot", page{Title: "Snapshot " + id, Section: "snapshots", Data: data, Actions: []action{
		{Label: "Restore it in a new session", Call: call{method: http.MethodPost, path: "/v1/sessions", body: `{"restore_from_environment_id": "` + data.Snapshot.ID + `"}`}},
		{Label: "Verify it", Call: call{method: http.MethodPost, path: path + "/verify"}},
		{Label: "Download the archive", Call: call{method: http.MethodGet, path: path + "/archive"}},
		{Label: "Delete it", Call: call{method: http.MethodDelete, path: path}},
	}})
}

// verifySnapshot reads the whole snapshot and says what it found.
func verifySnapshot(v *visit) error {
	id := v.r.PathValue("id")
	var found struct {
		OK      bool
		Checked struct {
			Entries  int64
			TarBytes int64 `json:"tar_bytes"`
		}
		Problems   []struct{ Code, Message string }
		DurationMS int64 `json:"duration_ms"`
	}
	if _, err := v.api.send(http.MethodPost, "/v1/snapshots"+joinPath(id)+"/verify", nil, &found); err != nil {
		return err
	}
	text := fmt.Sprintf("The snapshot is undamaged: %d files, %s, read in %s.", found.Checked.Entries, size(found.Checked.TarBytes), milliseconds(found.DurationMS))
	if !found.OK {
		text = "The snapshot is damaged."
		for _, p := range found.Problems {
			text += " " + p.Message + " (" + p.Code + ")."
		}
	}
	return v.done(text, "snapshots", id)
}

// diffView is what the comparison of two snapshots shows.
type diffView struct {
	From, To string
	Changes  []struct {
		Name, Origin            string
		Added, Removed, Changed []string
		Before, After           int
	}
	NotCompared []struct{ Name, Origin, Reason string } `json:"not_compared"`
}

func diffSnapshots(v *visit) error {
	from, to := v.r.PathValue("id"), v.query("with")
	var data diffView
	if _, err := v.api.get("/v1/snapshots"+joinPath(from, "diff", to), &data); err != nil {
		return err
	}
	return v.render("diff", page{Title: "Compare snapshots", Section: "snapshots", Data: data})
}

// downloadArchive and downloadState export a snapshot. They need a key with the right
// secrets.
func downloadArchive(v *visit) error {
	return v.api.download(v.w, "/v1/snapshots"+joinPath(v.r.PathValue("id"), "archive"))
}

func downloadState(v *visit) error {
	id, format := v.r.PathValue("id"), v.query("format")
	name := id + "-" + format + ".json"
	if format == "netscape" {
		name = id + "-cookies.txt"
	}
	v.w.Header().Set("Content-Disposition", "attachment; filename="+name)
	err := v.api.download(v.w, "/v1/snapshots"+joinPath(id, "state")+queryOf("format", format))
	if err != nil {
		v.w.Header().Del("Content-Disposition")
	}
	return err
}

func askDeleteSnapshot(v *visit) error {
	id := v.r.PathValue("id")
	return v.render("confirm", page{Title: "Delete a snapshot", Section: "snapshots", Data: confirmation{
		Question: "Delete the snapshot " + id + "?",
		Effect:   "Its environment cannot be restored afterwards. Sessions that were restored from it continue.",
		Action:   v.console.at("snapshots", id, "delete"), Button: "Delete", Back: v.console.at("snapshots", id),
	}})
}

func deleteSnapshot(v *visit) error {
	if _, err := v.api.send(http.MethodDelete, "/v1/snapshots"+joinPath(v.r.PathValue("id")), nil, nil); err != nil {
		return err
	}
	return v.done("The snapshot is deleted.", "snapshots")
}
