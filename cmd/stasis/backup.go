package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stasisd/stasis/backup"
	"github.com/stasisd/stasis/fault"
)

// backupCmd are the verbs about backups.
type backupCmd struct {
	Create  backupCreateCmd  `cmd:"" default:"withargs" help:"Write a backup: stasis backup TARGET. A daemon may run."`
	Restore backupRestoreCmd `cmd:"" help:"Put a backup into an empty data directory."`
}

type backupCreateCmd struct {
	storageFlags
	Keys     bool   `help:"Put the keys in too. Who has them and the archives has every login." env:"-"`
	Archives bool   `help:"Put the archives and documents of the snapshots in too." env:"-"`
	Replace  bool   `help:"Write the backup in the place of one that is there." env:"-"`
	Target   string `arg:"" help:"A folder, which is made; or one file, whose name ends with .tar.zst. A slash at the end makes any other name a folder."`
}

// Run is the verb.
func (c *backupCreateCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: no backup was written") }()
	g := gathering{cmd: c}
	if g.dir, err = c.dataDir(); err != nil {
		return err
	}
	if g.catalogue, err = c.catalogueFile(g.dir); err != nil {
		return err
	}
	if _, err := os.Stat(g.catalogue); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Config, "backup.create", "there is no catalogue %s: give the daemon's --data-dir and --database", g.catalogue)
	}
	if g.at, err = c.place(g.dir); err != nil {
		return err
	}
	if g.at.memory && c.Archives {
		return fault.New(fault.Config, "backup.create", "--archives: the snapshots of --store mem:// are in the daemon's memory and cannot be backed up")
	}
	w, err := backup.Begin(c.Target, c.Replace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	g.to = w.Dir()
	m, lost, err := g.gather(ctx)
	if err != nil {
		return err
	}
	m.StasisVersion, m.CreatedAt = version, time.Now().UTC()
	if m, err = w.Commit(ctx, m); err != nil {
		return err
	}
	c.tell(m, g.at.memory)
	if lost > 0 {
		return exitError{exitDamaged, fmt.Sprintf("%d snapshots or extensions that the catalogue names are lost; the rest is in the backup", lost)}
	}
	return nil
}

func (c *backupCreateCmd) tell(m backup.Manifest, memory bool) {
	var bytes int64
	for _, f := range m.Files {
		bytes += f.Size
	}
	fmt.Printf("%s holds %d files (%d bytes); the catalogue names %d snapshots\n", c.Target, len(m.Files), bytes, m.Snapshots)
	if m.Keys {
		fmt.Println("it holds the keys: who has them and the archives has every login")
	}
	tellMissing(m)
	if !m.Archives && !memory {
		fmt.Println("to have the archives: stasis store copy, or --archives")
	}
	if !m.Keys {
		fmt.Println("to have the keys: copy them elsewhere, or --keys")
	}
}

// tellMissing prints what is not in a backup.
func tellMissing(m backup.Manifest) {
	for _, what := range m.Missing {
		fmt.Println("not in it: " + what)
	}
	if m.Live > 0 {
		fmt.Printf("%d sessions ran when the backup was written: the first start of a daemon ends them; one that has a snapshot in the backup can be resumed from it\n", m.Live)
	}
}

type backupRestoreCmd struct {
	DataDir string `help:"The data directory to restore into: empty, or not there." placeholder:"DIR" required:""`
	Source  string `arg:"" help:"A backup: its folder or its file."`
}

// Run is the verb.
func (c *backupRestoreCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: nothing was restored") }()
	flags := storageFlags{DataDir: c.DataDir}
	dir, err := flags.dataDir()
	if err != nil {
		return err
	}
	made := []string{filepath.Join(dir, "lock"), dir} // by this restore
	made = slices.DeleteFunc(made, func(path string) bool { _, err := os.Lstat(path); return !errors.Is(err, fs.ErrNotExist) })
	s, err := flags.lock()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // nothing was restored, and nothing is left behind
			for _, path := range made {
				_ = os.Remove(path) // it may hold what somebody else has put there
			}
		}
		err = errors.Join(err, s.close())
	}()
	m, err := backup.Restore(ctx, c.Source, s.dir)
	if fault.Is(err, fault.ArchiveDamaged) {
		return exitError{exitDamaged, fault.MessageOf(err) + "; nothing was restored"}
	}
	if err != nil {
		return err
	}
	fmt.Printf("restored the backup of %s to %s: %d snapshots are named\n", m.CreatedAt.Format(time.RFC3339), s.dir, m.Snapshots)
	tellMissing(m)
	if !m.Keys {
		fmt.Printf("put the keys there before a daemon starts on it, for it makes new ones otherwise: %s and %s\n",
			filepath.Join(s.dir, "identity"), filepath.Join(s.dir, "archive-key"))
	}
	return nil
}
