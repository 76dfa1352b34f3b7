//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
)

// keepSnapshots fills a data directory as a daemon would: user ada has two snapshots of
// session s-1, and the second is the default. With "uncommitted" it saves a third one that
// no record names.
func keepSnapshots(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(fillDataDir(context.Background(), ts.MkAbs(args[0]), len(args) > 1))
}

func fillDataDir(ctx context.Context, dir string, uncommitted bool) (err error) {
	s, err := storageFlags{DataDir: dir}.acquire()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx, ""); err != nil {
		return err
	}
	save := func(n int) (snapshot.Snapshot, error) { return s.vault.Save(ctx, numbered(n)) }
	if uncommitted {
		_, err := save(3)
		return err
	}
	rec := profiles.Session{ID: "s-1", UserID: "ada", Status: profiles.StatusReady, CreatedAt: time.Now()}
	if err := s.catalogue.Sessions.CreateSession(ctx, rec); err != nil {
		return err
	}
	for n := range 2 {
		saved, err := save(n + 1)
		if err != nil {
			return err
		}
		_, err = s.catalogue.Snapshots.Commit(ctx, profiles.Commit{Move: &profiles.Move{Overwrite: true}, Snapshot: profiles.Snapshot{
			ID: saved.ID, SessionID: "s-1", UserID: "ada", Mode: "filesystem", CreatedAt: saved.CreatedAt, ArchiveID: saved.Archive.ID}})
		if err != nil {
			return err
		}
	}
	return nil
}

// numbered returns snapshot n of ada's session s-1.
func numbered(n int) snapshot.Draft {
	return snapshot.Draft{ID: fmt.Sprintf("01900000-0000-7000-8000-%012x", n), Mode: snapshot.Filesystem, CreatedAt: time.Now(),
		Location: snapshot.Location{Owner: profiles.OwnerOf("ada"), Session: "s-1", Scope: "agent", ScopeID: "browser"},
		Entries:  []snapshot.Entry{{Name: "state.json", Data: fmt.Appendf(nil, "state %d", n)}}}
}

// A verb that is interrupted with ^C has its own exit code, whatever it was doing.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	if err := fillDataDir(t.Context(), dir, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	from := "file://" + filepath.Join(dir, "snapshots")
	for name, verb := range map[string]interface{ Run(context.Context) error }{
		"check": &storeCheckCmd{storageFlags: storageFlags{DataDir: dir}},
		"copy":  &storeCopyCmd{From: from, To: "file://" + filepath.Join(t.TempDir(), "copy")},
		"list":  &snapshotListCmd{remoteDaemon: remoteDaemon{URL: "http://127.0.0.1:1", Key: "key"}},
	} {
		if code := report(verb.Run(ctx)); code != exitInterrupted {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}

// A copy that is killed after it has begun can be completed by the next one.
func TestKilledCopy(t *testing.T) {
	const archives = 40
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	if err := fillStore(t.Context(), from, archives); err != nil {
		t.Fatal(err)
	}
	copying := func() *exec.Cmd { // the test binary is stasis under that name
		return &exec.Cmd{Path: os.Args[0], Args: []string{"stasis", "store", "copy", "file://" + from, "file://" + to}}
	}
	// copied counts the archives of the copy, whose folder does not exist at first.
	copied := func() int {
		names, _ := os.ReadDir(filepath.Join(to, "archives"))
		return len(names)
	}
	for try := 0; copied() == 0 || copied() == archives; try++ {
		if try == 10 {
			t.Fatal("each copy ended before it was killed")
		}
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		killed := copying()
		var said strings.Builder
		killed.Stderr = &said
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = killed.Wait() // it is killed, or has copied everything
			close(ended)
		}()
		tick := time.NewTicker(time.Millisecond)
		for running := true; running && copied() < 4; {
			select {
			case <-ended:
				running = false
			case <-tick.C:
			}
		}
		tick.Stop()
		_ = killed.Process.Kill() // it fails if the copy has ended
		<-ended
		if how := killed.ProcessState; how.Exited() && !how.Success() {
			t.Fatalf("the copy failed: %s\n%s", how, &said)
		}
	}
	if out, err := copying().CombinedOutput(); err != nil {
		t.Fatalf("the next copy: %v\n%s", err, out)
	}
	if diff := cmp.Diff(objects(t, from), objects(t, to)); diff != "" {
		t.Errorf("-source +copy:\n%s", diff)
	}
}

// fillStore saves n snapshots into a store without a catalogue.
func fillStore(ctx context.Context, dir string, n int) (err error) {
	store, err := fsstore.Open(dir, fsstore.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	vault := snapshot.NewVault(store, snapshot.NewKeys(identity, [32]byte{}), snapshot.Options{Now: time.Now})
	for i := range n {
		if _, err := vault.Save(ctx, numbered(i)); err != nil {
			return err
		}
	}
	return nil
}

// objects returns the files of a store, except those of the process that has it open.
func objects(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, below := range []string{"archives", "users"} {
		err := fs.WalkDir(os.DirFS(dir), below, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(filepath.Join(dir, path))
			all[path] = string(raw)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
