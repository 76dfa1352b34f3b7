//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/stasisd/stasis/backup"
	"github.com/stasisd/stasis/fault"
)

// backupCmd holds the verbs that write and restore backups.
type backupCmd struct {
	Create  backupCreateCmd  `cmd:"" default:"withargs" help:"Write a backup: stasis backup TARGET. A daemon may run."`
	Restore backupRestoreCmd `cmd:"" help:"Restore a backup into an empty data directory."`
}

type backupCreateCmd struct {
	storageFlags
	progressFlag
	printed
	Keys     bool   `help:"Include the keys. Anyone who has the keys and the archives has every login." env:"-"`
	Archives bool   `help:"Include the archives and documents of the snapshots." env:"-"`
	Replace  bool   `help:"Replace an existing backup." env:"-"`
	Target   string `arg:"" help:"Where to write the backup: a new folder, or one file whose name ends with .tar.zst. For a folder with the name of another kind of archive, such as x.tar, add a slash at the end."`
}

// Run writes the backup and prints what it contains and what it lacks.
func (c *backupCreateCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: no backup was written") }()
	g := gatherer{cmd: c}
	if g.dir, err = c.dataDir(); err != nil {
		return err
	}
	if g.catalogue, err = c.catalogueFile(g.dir); err != nil {
		return err
	}
	if !catalogueExists(g.catalogue) {
		return fault.New(fault.Config, "backup.create", "catalogue %s: does not exist; give the daemon's --data-dir and --database", g.catalogue)
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
	bar := c.bytes("checking", -1)
	m, err = w.Commit(backup.WithProgress(ctx, func(n int) { _ = bar.Add(n) }), m)
	erase(bar)
	if err != nil {
		return err
	}
	if err := c.print(m, func() error { c.printSummary(m, g.at.memory); return nil }); err != nil {
		return err
	}
	var lacks []string
	advice := ""
	if lost > 0 {
		lacks = append(lacks, fmt.Sprintf("snapshots or extensions that are in the catalogue and lost: %d", lost))
	}
	if len(g.lostKeys) > 0 {
		lacks = append(lacks, "--keys: the data directory lacks "+strings.Join(g.lostKeys, " and "))
		advice = ". If the daemon has key flags, give them here too"
	}
	if len(lacks) > 0 {
		return exitError{exitDamaged, strings.Join(lacks, "; ") + "; everything else is in the backup" + advice}
	}
	return nil
}

func (c *backupCreateCmd) printSummary(m backup.Manifest, memory bool) {
	var bytes int64
	for _, f := range m.Files {
		bytes += f.Size
	}
	fmt.Printf("%s holds %s (%d bytes); its catalogue lists %s\n", c.Target, english.Plural(len(m.Files), "file", ""), bytes, english.Plural(m.Snapshots, "snapshot", ""))
	if keys := m.KeyFiles(); len(keys) > 0 {
		fmt.Println("it contains these keys: " + strings.Join(keys, ", "))
	}
	if slices.Contains(m.KeyFiles(), "identity") {
		fmt.Println("anyone who has the identity and the archives has every login")
	}
	printMissing(m)
	if !m.Archives && !memory {
		fmt.Println("to back up the archives: run stasis store copy, or give --archives")
	}
	if !c.Keys {
		fmt.Println("to back up the keys: copy them to another place, or give --keys")
	}
}

// printMissing prints what a backup lacks.
func printMissing(m backup.Manifest) {
	for _, what := range m.Missing {
		fmt.Println("not in the backup: " + what)
	}
	if m.Live > 0 {
		fmt.Printf("%s ran when the backup was written. The first start of a daemon ends what ran. A session with a snapshot in the backup can be resumed from it.\n", english.Plural(m.Live, "session", ""))
	}
}

type backupRestoreCmd struct {
	progressFlag
	DataDir  string `help:"The data directory to restore into: empty or absent." placeholder:"DIR" required:""`
	KeysFrom string `help:"A second backup, with keys: restore all its keys, and none of SOURCE." placeholder:"BACKUP" env:"-"`
	Source   string `arg:"" help:"A backup: its folder or its file."`
}

// Run restores the backup, or leaves the data directory as it was.
func (c *backupRestoreCmd) Run(ctx context.Context) (err error) {
	defer func() { err = interrupted(ctx, err, "interrupted: nothing was restored") }()
	flags := storageFlags{DataDir: c.DataDir}
	dir, err := flags.dataDir()
	if err != nil {
		return err
	}
	made := []string{filepath.Join(dir, "lock"), dir} // what this restore creates
	made = slices.DeleteFunc(made, func(path string) bool { _, err := os.Lstat(path); return !errors.Is(err, fs.ErrNotExist) })
	s, err := flags.lock()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // nothing was restored: remove what was created
			for _, path := range made {
				_ = os.Remove(path) // fails if another process has put something in it
			}
		}
		err = errors.Join(err, s.close())
	}()
	bar := c.bytes("restoring", -1)
	m, err := backup.Restore(backup.WithProgress(ctx, func(n int) { _ = bar.Add(n) }), c.Source, c.KeysFrom, s.dir)
	erase(bar)
	if fault.Is(err, fault.ArchiveDamaged) {
		return exitError{exitDamaged, fault.MessageOf(err) + "; nothing was restored"}
	}
	if err != nil {
		return err
	}
	fmt.Printf("restored the backup of %s to %s: its catalogue lists %s\n", m.CreatedAt.Format(time.RFC3339), s.dir, english.Plural(m.Snapshots, "snapshot", ""))
	if c.KeysFrom != "" {
		m.Missing = slices.DeleteFunc(m.Missing, isKey) // printAbsentKeys says what is still absent
	}
	printMissing(m)
	printAbsentKeys(m, s.dir)
	return nil
}
