package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
)

// keepSnapshots fills a data directory as a daemon would: user ada has two
// snapshots of session s-1, the second is the default. With "uncommitted" a third
// one is saved that no record names.
func keepSnapshots(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(fillDataDir(context.Background(), ts.MkAbs(args[0]), len(args) > 1))
}

func fillDataDir(ctx context.Context, dir string, uncommitted bool) (err error) {
	s, err := storageFlags{DataDir: dir}.take()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	loc := snapshot.Location{Owner: profiles.OwnerOf("ada"), Session: "s-1", Scope: "agent", ScopeID: "browser"}
	save := func(n int) (snapshot.Snapshot, error) {
		return s.vault.Save(ctx, snapshot.Draft{ID: fmt.Sprintf("01900000-0000-7000-8000-%012x", n), Location: loc, Mode: snapshot.Filesystem,
			CreatedAt: time.Now(), Entries: []snapshot.Entry{{Name: "state.json", Data: fmt.Appendf(nil, "state %d", n)}}})
	}
	if uncommitted {
		_, err := save(3)
		return err
	}
	rec := profiles.Session{ID: "s-1", UserID: "ada", Status: profiles.StatusReady, CreatedAt: time.Now()}
	if err := s.catalogue.CreateSession(ctx, rec); err != nil {
		return err
	}
	for n := range 2 {
		saved, err := save(n + 1)
		if err != nil {
			return err
		}
		_, err = s.catalogue.Commit(ctx, profiles.Commit{Move: &profiles.Move{Overwrite: true}, Snapshot: profiles.Snapshot{
			ID: saved.ID, SessionID: "s-1", UserID: "ada", Mode: "filesystem", CreatedAt: saved.CreatedAt, ArchiveID: saved.Archive.ID}})
		if err != nil {
			return err
		}
	}
	return nil
}
