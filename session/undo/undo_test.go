package undo_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/undo"
)

// A user who fills the limits, in number or in bytes, loses the own oldest profiles and
// nobody else's.
func TestFullFromOneUser(t *testing.T) {
	for name, limits := range map[string]undo.Limits{
		"number": {Window: time.Hour, Count: 3, Bytes: 1 << 20},
		"bytes":  {Window: time.Hour, Count: 9, Bytes: 2500},
	} {
		t.Run(name, func(t *testing.T) {
			launcher, err := launch.New(launch.Config{Binary: "/bin/true", Root: t.TempDir(), UIDs: launch.UIDRange{Base: 320600, Count: 9}})
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			k := undo.New(limits, func() time.Time { return now }, slog.New(slog.DiscardHandler))
			keep := func(session, user string, size int) {
				t.Helper()
				dir, err := launcher.NewDir(session)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir.Path, "profile", "x"), make([]byte, size), 0o600); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Second)
				job := save.Job{Dir: dir}
				job.Session.ID, job.Session.UserID = session, user
				if _, ok := k.Keep(job); !ok {
					t.Errorf("%s is not kept", session)
				}
			}
			keep("alice-1", "alice", 500)
			for _, session := range []string{"bob-1", "bob-2", "bob-3", "bob-4"} {
				keep(session, "bob", 1000)
			}
			for session, kept := range map[string]bool{"alice-1": true, "bob-1": false, "bob-2": false, "bob-3": true, "bob-4": true} {
				if _, ok := k.Take(session); ok != kept {
					t.Errorf("%s: kept is %v", session, ok)
				}
			}
		})
	}
}
