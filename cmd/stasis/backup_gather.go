//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/stasisd/stasis/backup"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/fsstore"
)

// gatherer fills the folder of a backup from a data directory. Meanwhile a daemon may
// save, delete and prune snapshots there.
type gatherer struct {
	cmd       *backupCreateCmd
	dir       string // the data directory
	catalogue string
	at        storeURL
	to        string   // the folder of the backup
	lostKeys  []string // needed keys that --keys did not find
}

// maxTries limits how often the catalogue is copied again because snapshots in it were
// deleted before they could be copied.
const maxTries = 20

// gather fills the folder. Everything that the copy of the catalogue lists must be in the
// backup. So gather copies the files first, then the catalogue, then the listed files that
// are new. A listed file that no longer exists was deleted meanwhile; a newer copy of the
// catalogue does not list it.
//
// lost counts the snapshots and extensions that the catalogue still lists and the store
// does not have.
func (g *gatherer) gather(ctx context.Context) (m backup.Manifest, lost int, err error) {
	from, to, err := g.stores(ctx)
	if err != nil {
		return m, 0, err
	}
	defer func() { err = errors.Join(err, closeStores(from, to)) }()
	if err := g.copyFiles(ctx, from, to); err != nil {
		return m, 0, err
	}
	before := map[string]bool{} // missing at the previous try
	for range maxTries {
		if m, err = g.copyCatalogue(ctx); err != nil {
			return m, 0, err
		}
		missing, err := g.missing(ctx, to)
		if err == nil && len(missing) > 0 {
			if err = g.copyFiles(ctx, from, to); err == nil {
				missing, err = g.missing(ctx, to)
			}
		}
		if err != nil {
			return m, 0, err
		}
		fresh := 0
		for _, what := range missing {
			if !before[what] {
				fresh++
			}
			before[what] = true
		}
		if fresh > 0 {
			continue
		}
		for _, what := range missing {
			m.Missing = append(m.Missing, what+": listed in the catalogue, but lost")
		}
		g.describe(&m)
		return m, len(missing), errors.Join(g.copyKeys(&m), g.removeStoreFiles())
	}
	return m, 0, fault.New(fault.StoreFailed, "backup.create", "snapshots are being deleted faster than they can be copied; try again later")
}

// stores opens the daemon's store for reading and the one in the backup; both nil without
// --archives.
func (g *gatherer) stores(ctx context.Context) (from, to snapshot.Store, err error) {
	if !g.cmd.Archives {
		return nil, nil, nil
	}
	if _, err := os.Stat(g.at.dir); g.at.dir != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fault.New(fault.Config, "backup.create", "--archives: the store %s does not exist; give the daemon's --store", g.at.dir)
	}
	if from, err = g.at.open(ctx, g.cmd.s3Flags, filepath.Join(g.dir, "spool"), true); err != nil {
		return nil, nil, err
	}
	local, err := fsstore.Open(filepath.Join(g.to, backup.Snapshots), fsstore.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	return from, local, nil
}

func closeStores(stores ...snapshot.Store) (err error) {
	for _, s := range stores {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// copyFiles copies the uploaded extensions and the snapshots that are not in the backup
// yet.
func (g *gatherer) copyFiles(ctx context.Context, from, to snapshot.Store) error {
	if err := g.copyExtensions(ctx); err != nil || from == nil {
		return err
	}
	bar, err := g.cmd.archives(ctx, from)
	if err != nil {
		return err
	}
	// Damage is not reported here: missing reports it, once for each backup.
	_, err = snapshot.Copy(ctx, from, to, snapshot.CopyOptions{Progress: showCopy(bar), Found: func(snapshot.Finding) error { return nil }})
	erase(bar)
	return err
}

// copyCatalogue copies the catalogue, replacing an earlier copy, and counts what it lists.
func (g *gatherer) copyCatalogue(ctx context.Context) (m backup.Manifest, err error) {
	file := filepath.Join(g.to, backup.Database)
	if err := os.RemoveAll(file); err != nil {
		return m, fault.Wrap(err, fault.StoreFailed, "backup.create", "")
	}
	live, err := sqldb.Open(ctx, sqldb.Options{Path: g.catalogue, Now: time.Now, ReadOnly: true})
	if err != nil {
		return m, err
	}
	err = live.CopyTo(ctx, file)
	if err := errors.Join(err, live.Close()); err != nil {
		return m, err
	}
	err = g.eachListed(ctx, func(db *sqldb.DB) error {
		sessions, _, err := db.Sessions.Sessions(ctx, profiles.SessionFilter{Live: true})
		m.Live = len(sessions)
		return err
	}, func(profiles.Snapshot) error { m.Snapshots++; return nil })
	return m, err
}

// eachListed opens the copy of the catalogue, calls look, and calls each for every snapshot in
// it.
func (g *gatherer) eachListed(ctx context.Context, look func(*sqldb.DB) error, each func(profiles.Snapshot) error) (err error) {
	db, err := sqldb.Open(ctx, sqldb.Options{Path: filepath.Join(g.to, backup.Database), Now: time.Now, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := look(db); err != nil {
		return err
	}
	const page = 1000
	for after := ""; ; {
		rows, next, err := db.Snapshots.Snapshots(ctx, profiles.SnapshotFilter{Limit: page, StartAfter: after})
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := each(row); err != nil {
				return err
			}
		}
		if after = next; after == "" {
			return nil
		}
	}
}

// missing lists what the copy of the catalogue has and the backup lacks.
func (g *gatherer) missing(ctx context.Context, to snapshot.Store) (missing []string, err error) {
	err = g.eachListed(ctx, func(db *sqldb.DB) error {
		extensions, err := db.Extensions.Extensions(ctx, "")
		if err != nil {
			return err
		}
		stored, err := db.Extensions.ExtensionFiles(ctx)
		for _, e := range extensions {
			if _, err := os.Stat(filepath.Join(g.to, backup.Extensions, e.SHA256)); err != nil && !stored[e.SHA256] {
				missing = append(missing, "the files of extension "+e.ID)
			}
		}
		return err
	}, func(row profiles.Snapshot) error {
		if to == nil {
			return nil
		}
		has, err := audit.Stored(ctx, to, row)
		if !has {
			missing = append(missing, "snapshot "+row.ID)
		}
		return err
	})
	return missing, err
}

// copyExtensions copies the complete folders of uploaded extensions. Each is named by the
// hash of its content and never changes. Those of nodes are in the catalogue.
func (g *gatherer) copyExtensions(ctx context.Context) error {
	from, to := filepath.Join(g.dir, extensionFolder), filepath.Join(g.to, backup.Extensions)
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() {
			continue
		}
		at := filepath.Join(to, e.Name())
		if _, there := os.Stat(at); there == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fault.Wrap(err, fault.Timeout, "backup.create", "the backup was cancelled")
		}
		if err := os.CopyFS(at, os.DirFS(filepath.Join(from, e.Name()))); err != nil {
			if _, gone := os.Stat(filepath.Join(from, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
				return fault.Wrap(err, fault.StoreFailed, "backup.create", "the files of extension "+e.Name()+" cannot be copied")
			}
			if err := os.RemoveAll(at); err != nil { // the extension was deleted meanwhile
				return fault.Wrap(err, fault.StoreFailed, "backup.create", "")
			}
		}
	}
	return fault.Wrap(err, fault.StoreFailed, "backup.create", "the extensions cannot be read")
}

// removeStoreFiles removes the files that an open store has besides its objects.
func (g *gatherer) removeStoreFiles() error {
	for _, name := range []string{"tmp", "lock"} {
		if err := os.RemoveAll(filepath.Join(g.to, backup.Snapshots, name)); err != nil {
			return fault.Wrap(err, fault.StoreFailed, "backup.create", "")
		}
	}
	return nil
}

// describe records what the backup contains and what it lacks besides keys.
func (g *gatherer) describe(m *backup.Manifest) {
	m.Archives, m.Store = g.cmd.Archives, g.at.String()
	not := func(format string, args ...any) { m.Missing = append(m.Missing, fmt.Sprintf(format, args...)) }
	if m.Missing == nil {
		m.Missing = []string{}
	}
	switch {
	case g.at.memory:
		not("the snapshots: they are in the memory of the daemon (mem://) and are lost when it stops")
	case !g.cmd.Archives:
		not("the archives and documents of %s: they are in %s", english.Plural(m.Snapshots, "snapshot", ""), g.at)
	}
}
