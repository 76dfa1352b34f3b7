package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/e2e/daemon"
)

// Package client does the whole loop with a real daemon, and so does examples/go.
func TestGoClient(t *testing.T) {
	t.Parallel()
	site, err := demosite.Start(func(h http.Handler) http.Handler { return h })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = site.Close() })
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	ctx, c := t.Context(), client.New(d.URL, daemon.Key)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	s, err := c.CreateSession(ctx, client.CreateOptions{UserID: "ada", Engine: "shell", StartURL: site.URL + "/", Labels: map[string]string{"team": "qa"}})
	must(err)
	must(c.Upload(ctx, s.ID, "up.txt", strings.NewReader("uploaded")))
	var file bytes.Buffer
	must(c.Download(ctx, s.ID, "up.txt", &file))
	files, err := c.Files(ctx, s.ID)
	must(err)
	if file.String() != "uploaded" || len(files) != 1 || files[0].Name != "up.txt" {
		t.Errorf("files %+v, %q", files, &file)
	}
	link, err := c.Share(ctx, s.ID, false, time.Hour)
	must(err)
	if !strings.HasPrefix(link.URL, d.URL) || link.Control {
		t.Errorf("link %+v", link)
	}
	first, err := c.Checkpoint(ctx, s.ID, client.CheckpointOptions{Label: "one"})
	must(err)
	ended, err := c.EndSession(ctx, s.ID, client.EndOptions{Mode: "filesystem", SaveAsDefault: true})
	must(err)
	if ended.Snapshot == nil || ended.Default == nil || !ended.Default.Moved || first.Snapshot.Label != "one" {
		t.Fatalf("%+v", ended)
	}

	s, err = c.CreateSession(ctx, client.CreateOptions{FromDefaultOf: "ada"})
	must(err)
	if s.UserID != "ada" || s.Engine != "shell" || s.Restored == nil || s.Restored.SnapshotID != ended.Snapshot.ID || s.CDPURL == "" {
		t.Errorf("restored %+v", s)
	}
	must(c.Pause(ctx, s.ID))
	s, err = c.Resume(ctx, s.ID)
	must(err)
	if report, err := c.Report(ctx, s.ID); err != nil || report.SnapshotID != ended.Snapshot.ID {
		t.Errorf("report %+v, %v", report, err)
	}
	_, err = c.EndSession(ctx, s.ID, client.EndOptions{})
	must(err)

	count := 0
	for s, err := range c.Sessions(ctx, client.ListSessions{UserID: "ada"}) {
		must(err)
		if count++; s.EndedAt == nil {
			t.Errorf("%s has not ended", s.ID)
		}
	}
	if count != 2 {
		t.Errorf("%d sessions", count)
	}
	diff, err := c.Diff(ctx, first.Snapshot.ID, ended.Snapshot.ID)
	must(err)
	for _, change := range diff.Changes {
		if change.Name == "cookies" { // the tab's list of visited pages may have grown
			t.Errorf("diff %+v", change)
		}
	}
	checked, err := c.Verify(ctx, ended.Snapshot.ID)
	must(err)
	var archive bytes.Buffer
	must(c.Export(ctx, ended.Snapshot.ID, &archive))
	if !checked.OK || archive.Len() == 0 {
		t.Errorf("verified %+v, %d bytes", checked, archive.Len())
	}
	_, err = c.SetDefault(ctx, "ada", first.Snapshot.ID)
	must(err)
	versions := 0
	for v, err := range c.History(ctx, "ada") {
		must(err)
		if versions++; !v.Available {
			t.Errorf("version %d is not available", v.Version)
		}
	}
	current, err := c.Default(ctx, "ada")
	must(err)
	if versions != 2 || current.SnapshotID != first.Snapshot.ID {
		t.Errorf("%d versions, %+v", versions, current)
	}
	must(c.SetLoginCheck(ctx, "ada", &client.LoginCheck{URL: site.URL + "/", Status: 200, TimeoutSeconds: 60}))
	if outcome, err := c.CheckLogin(ctx, "ada"); err != nil || !outcome.LoggedIn {
		t.Errorf("check %+v, %v", outcome, err)
	}
	must(c.RemoveDefault(ctx, "ada"))
	var refused *client.Error
	if _, err := c.Default(ctx, "ada"); !errors.As(err, &refused) || refused.Code != "default_not_found" || refused.Status != 404 {
		t.Errorf("after the removal: %v", err)
	}
	must(c.DeleteSnapshot(ctx, ended.Snapshot.ID))

	cmd := exec.CommandContext(ctx, "go", "run", "../examples/go", "grace", site.URL+"/")
	cmd.Env = append(os.Environ(), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
	out, err := cmd.CombinedOutput()
	if current, failed := c.Default(ctx, "grace"); err != nil || failed != nil || current.Version != 1 || !strings.Contains(string(out), `"`) {
		t.Errorf("examples/go: %v, %v\n%s", err, failed, out)
	}
}

// The page shows the whole example.
func TestGoPage(t *testing.T) {
	page, err := os.ReadFile("../docs/go.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../examples/go/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(example), "package main\n")
	if !strings.Contains(string(page), "```go\n"+strings.TrimSpace(code)+"\n```") {
		t.Error("docs/go.md does not show examples/go/main.go")
	}
}
