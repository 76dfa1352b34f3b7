package sqldb_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
)

const childPath = "SQLDB_TEST_COMMIT_TO"

// commitForever turns the test binary into a child process. The child commits to the
// named database until it is killed, and prints each snapshot's ID after its commit. The
// result reports whether this process is the child.
func commitForever() bool {
	path := os.Getenv(childPath)
	if path == "" {
		return false
	}
	ctx := context.Background()
	db, err := sqldb.Open(ctx, sqldb.Options{Path: path, Now: time.Now})
	for i := 0; err == nil; i++ {
		id := fmt.Sprintf("%d-%d", os.Getpid(), i)
		s := profiles.Session{ID: "s-" + id, UserID: "user", Status: profiles.StatusReady, CreatedAt: time.Unix(int64(i), 0)}
		if err = db.Sessions.CreateSession(ctx, s); err != nil {
			break
		}
		if err = keepRecord(ctx, db, s); err != nil {
			break
		}
		_, err = db.Snapshots.Commit(ctx, profiles.Commit{
			Snapshot: profiles.Snapshot{ID: id, SessionID: s.ID, UserID: "user", CreatedAt: s.CreatedAt},
			Move:     &profiles.Move{Overwrite: true},
			End:      &profiles.End{SessionID: s.ID, Status: profiles.StatusCompleted, EndedAt: s.CreatedAt},
		})
		if err == nil {
			fmt.Println(id)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return true
}

// keepRecord begins a run of the session, which a kill leaves open. The types of its
// events contain their numbers.
func keepRecord(ctx context.Context, db *sqldb.DB, s profiles.Session) error {
	run, err := db.Runs.BeginRun(ctx, profiles.Run{ID: "r-" + s.ID, SessionID: s.ID, StartedAt: s.CreatedAt})
	for i := 0; err == nil && i < 9; i += 3 {
		batch := make([]profiles.Event, 3)
		for j := range batch {
			batch[j] = profiles.Event{Type: fmt.Sprint(i + j + 1), At: s.CreatedAt}
		}
		_, err = db.Runs.AddEvents(ctx, run.ID, batch, profiles.EventBounds{Count: 7})
	}
	return err
}

// checkRecord checks what keepRecord wrote: complete batches, and no number twice or left
// out. The next event gets the next number.
func checkRecord(t *testing.T, db *sqldb.DB) {
	t.Helper()
	open, err := db.Runs.OpenRuns(t.Context())
	if err != nil || len(open) == 0 {
		t.Fatalf("%d runs were left open: %v", len(open), err)
	}
	for _, r := range open {
		added, err := db.Runs.AddEvents(t.Context(), r.ID, []profiles.Event{{Type: "after", At: time.Unix(1, 0)}}, profiles.EventBounds{})
		if err != nil {
			t.Fatal(err)
		}
		page, err := db.Runs.Events(t.Context(), r.ID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		last := page.LatestExclusive - 1
		if (last-1)%3 != 0 || added[0].Sequence != last || int64(len(page.Events)) != last-page.First+1 {
			t.Errorf("run %s has %d events from %d to %d", r.ID, len(page.Events), page.First, last)
		}
		for i, e := range page.Events {
			if e.Sequence != page.First+int64(i) || e.Sequence < last && e.Type != fmt.Sprint(e.Sequence) {
				t.Errorf("run %s: event %d is %+v", r.ID, i, e)
			}
		}
	}
}

// A commit that was reported survives a kill during a later write. A commit that was not
// reported exists completely or not at all.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stasis.db")
	var printed []string
	for round := range 3 {
		printed = append(printed, killWhileCommitting(t, path, 20+7*round)...)
	}
	db := open(t, path)
	for _, id := range printed {
		if _, err := db.Snapshots.Snapshot(t.Context(), id); err != nil {
			t.Errorf("snapshot %s: %v", id, err)
		}
	}
	history, _, err := db.Defaults.DefaultHistory(t.Context(), "user", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(history) < len(printed) {
		t.Errorf("%d commits, %d versions", len(printed), len(history))
	}
	sessions, _, err := db.Sessions.Sessions(t.Context(), profiles.SessionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for _, s := range sessions {
		_, err := db.Snapshots.NewestSnapshot(t.Context(), s.ID)
		if s.Status.Ended() != (err == nil) {
			t.Errorf("session %s is %s and its snapshot: %v", s.ID, s.Status, err)
		}
		if s.Status.Ended() {
			ended++
		}
	}
	if ended != len(history) {
		t.Errorf("%d sessions ended, %d versions", ended, len(history))
	}
	checkRecord(t, db)
}

// killWhileCommitting runs the child, kills it after n commits and returns every ID that
// it printed.
func killWhileCommitting(t *testing.T, path string, n int) []string {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childPath+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var printed []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		printed = append(printed, lines.Text())
		if len(printed) == n {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || len(printed) < n {
		t.Fatalf("the child exited on its own after %d commits: %v", len(printed), err)
	}
	return printed
}
