package torture_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// Environment variables of the child.
const (
	childPlaces = "TORTURE_PLACES" // places, as JSON
	childSeed   = "TORTURE_SEED"
)

// writers is how many goroutines save at once. kept is how many snapshots each keeps
// before it deletes one for each new one.
const (
	writers = 4
	kept    = 5
)

// event is one line of the child's output. It reports a finished save or delete, or a
// delete that is about to start.
type event struct {
	Did     string // saved | deleting
	ID      string
	User    string `json:",omitempty"`
	Version int64  `json:",omitempty"` // of the user's default, if the save moved it
}

// report writes an event to standard output.
func report(e event) error { return json.NewEncoder(os.Stdout).Encode(e) }

// writeForever saves and deletes until the process is killed.
func writeForever(ctx context.Context, raw string) error {
	var in places
	if err := json.Unmarshal([]byte(raw), &in); err != nil {
		return err
	}
	seed, err := strconv.ParseUint(os.Getenv(childSeed), 10, 64)
	if err != nil {
		return err
	}
	s, err := openStorage(ctx, in)
	if err != nil {
		return err
	}
	rows, _, err := s.catalogue.Snapshots.Snapshots(ctx, profiles.SnapshotFilter{})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for n := range writers {
		w := &writer{storage: s, random: rand.New(rand.NewPCG(seed, uint64(n))), user: "user-" + strconv.Itoa(n%2)}
		for i := n; i < len(rows); i += writers { // those that earlier children saved
			w.own = append(w.own, rows[i])
		}
		g.Go(func() error {
			for {
				if err := w.session(ctx); err != nil {
					return fmt.Errorf("writer %d: %w", n, err)
				}
			}
		})
	}
	return g.Wait()
}

// writer is one goroutine that saves. Two of them share a user and so a default.
type writer struct {
	*storage
	random *rand.Rand
	user   string
	own    []profiles.Snapshot
}

// session makes one session: some checkpoints, and an end with a save.
func (w *writer) session(ctx context.Context) error {
	rec := profiles.Session{ID: uuid.Must(uuid.NewV7()).String(), UserID: w.user, Status: profiles.StatusRunning, CreatedAt: time.Now()}
	if err := w.catalogue.Sessions.CreateSession(ctx, rec); err != nil {
		return err
	}
	for left := w.random.IntN(3); left >= 0; left-- {
		if err := w.save(ctx, rec, left == 0); err != nil {
			return err
		}
		for len(w.own) > kept {
			if err := w.remove(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// save makes the same calls as keep in session/save/keep.go.
func (w *writer) save(ctx context.Context, rec profiles.Session, last bool) error {
	id := uuid.Must(uuid.NewV7()).String()
	saved, err := w.vault.Save(ctx, snapshot.Draft{
		ID: id, Location: locationOf(w.user, rec.ID), Mode: snapshot.Filesystem, CreatedAt: time.Now(),
		Entries: w.entries(id), Private: json.RawMessage(`{"user_id":"` + w.user + `"}`),
	})
	if err != nil {
		return err
	}
	c := profiles.Commit{Snapshot: profiles.Snapshot{ID: id, SessionID: rec.ID, UserID: w.user, Mode: string(saved.Mode),
		CreatedAt: saved.CreatedAt, ArchiveID: saved.Archive.ID, SizeBytes: saved.Archive.StoredSize}}
	switch w.random.IntN(4) {
	case 0: // moves no default
	case 1:
		now, err := w.catalogue.Defaults.Default(ctx, w.user)
		if err != nil && !fault.Is(err, fault.DefaultNotFound) {
			return err
		}
		c.Move = &profiles.Move{From: now.Version} // another writer may be faster
	default:
		c.Move = &profiles.Move{Overwrite: true}
	}
	if last {
		c.End = &profiles.End{SessionID: rec.ID, Status: profiles.StatusCompleted, EndedAt: time.Now()}
	}
	if w.random.IntN(20) == 0 { // a failed commit: the save is undone
		return w.vault.Delete(ctx, saved.Location, id, w.catalogue.Snapshots.ArchiveInUse)
	}
	moved, err := w.catalogue.Snapshots.Commit(ctx, c)
	if err != nil {
		return err
	}
	w.vault.MarkCommitted(saved)
	w.own = append(w.own, c.Snapshot)
	e := event{Did: "saved", ID: id, User: w.user}
	if moved.Moved {
		e.Version = moved.Version
	}
	return report(e)
}

// entries returns the files of an environment. Some environments are equal, so that they
// share archives.
func (w *writer) entries(id string) []snapshot.Entry {
	if w.random.IntN(8) == 0 {
		return []snapshot.Entry{{Name: state.FileName, Data: []byte(`{"of":"all"}`)}}
	}
	size := 1 + w.random.IntN([]int{2 << 10, 64 << 10, 400 << 10}[w.random.IntN(3)])
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(w.random.Uint32())
	}
	return []snapshot.Entry{{Name: "Default/data", Data: data}, {Name: state.FileName, Data: []byte(`{"of":"` + id + `"}`)}}
}

// remove makes the calls of library.Snapshots.Delete for a random snapshot.
func (w *writer) remove(ctx context.Context) error {
	n := w.random.IntN(len(w.own))
	row := w.own[n]
	w.own = append(w.own[:n:n], w.own[n+1:]...)
	if err := report(event{Did: "deleting", ID: row.ID}); err != nil {
		return err
	}
	_, err := w.catalogue.Snapshots.DeleteSnapshot(ctx, row.ID)
	if fault.Is(err, fault.SnapshotInUse) {
		return nil // it is a default and stays
	}
	if err != nil {
		return err
	}
	return w.vault.Delete(ctx, locationOf(row.UserID, row.SessionID), row.ID, w.catalogue.Snapshots.ArchiveInUse)
}

func locationOf(user, session string) snapshot.Location {
	return snapshot.Location{Owner: profiles.OwnerOf(user), Session: session, Scope: "agent", ScopeID: "browser"}
}
