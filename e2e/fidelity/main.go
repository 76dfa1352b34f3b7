// Fidelity tries what survives in which way of keeping a browser, kind of
// state by kind of state, and writes the table of it.
//
// Each way begins with the same user data directory, makes every kind in its
// browser, leaves, comes back, and is read again by the same steps. Nothing is
// said of a way that was not tried.
//
// It ends with 1 if ours loses a kind that is not on the list of what cannot
// be carried, or if another's way carries one that ours does not.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/stasisd/stasis/e2e/apps/blank"
	"github.com/stasisd/stasis/e2e/rig"
)

// atOnce is how many ways are tried beside each other: each has one Chrome, or
// one more that is kept ready.
const atOnce = 2

func main() {
	var s settings
	flag.StringVar(&s.binary, "stasis", "bin/stasis", "the daemon's binary")
	flag.StringVar(&s.chrome, "chrome", "/usr/lib/chromium/chromium", "Chrome's binary")
	flag.StringVar(&s.clients, "clients", "e2e/clients", "folder of the client libraries")
	flag.StringVar(&s.out, "out", "docs/fidelity.md", "file that the table is written to")
	flag.StringVar(&s.only, "only", "", "try only ways with this in their name, and write to standard output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

//go:embed extension
var extensionFiles embed.FS

// settings are the command's flags.
type settings struct{ binary, chrome, clients, out, only string }

func run(ctx context.Context, s settings) (err error) {
	scratch, err := os.MkdirTemp("", "fi-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	// Run by root, each of our Chromes has a user of its own, who must pass.
	if err := os.Chmod(scratch, 0o711); err != nil {
		return err
	}
	site, err := blank.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	desktop := filepath.Join(scratch, "desktop")
	facts, err := makeDesktop(ctx, s.chrome, desktop, site)
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(scratch, "extension"), extensionFiles); err != nil {
		return err
	}
	apps, stop, err := startApplications(scratch)
	defer stop()
	if err != nil {
		return err
	}
	all := environments(apps)
	columns, err := tryAll(ctx, s, all, scratch, site, desktop)
	if err != nil {
		return err
	}
	t := table{rows: rows(all), columns: columns, chrome: facts}
	if s.only != "" {
		fmt.Print(t.markdown())
		return nil
	}
	if err := t.clients(s.clients); err != nil {
		return err
	}
	if err := os.WriteFile(s.out, []byte(t.markdown()), 0o644); err != nil {
		return err
	}
	return t.verdict()
}

// ways are the columns, ours first, for one environment: the n-th. They keep their
// files in a folder of their own.
func ways(s settings, scratch, extension string, n int, told obj) ([]way, error) {
	var zipped bytes.Buffer
	if told != nil {
		zip := zip.NewWriter(&zipped)
		if err := errors.Join(zip.AddFS(extensionFiles), zip.Close()); err != nil {
			return nil, err
		}
	}
	var all []way
	for i, w := range []*stasis{
		{title: cold, path: pathCold, engine: inChrome, then: inChrome},
		{title: warm, path: pathWarm, engine: inChrome, then: inChrome},
		{title: standby, path: pathStandby, engine: inChrome, then: inChrome},
		{title: parked, path: pathParked, engine: inChrome, then: inChrome},
		{title: otherDirectory, path: pathCold, through: archive, engine: inChrome, then: inChrome},
		{title: portable, path: pathCold, through: playwright, engine: inChrome, then: inChrome},
		{title: shellCold, path: pathCold, engine: inShell, then: inShell},
		{title: shellWarm, path: pathWarm, engine: inShell, then: inShell},
		{title: shellStandby, path: pathStandby, engine: inShell, then: inShell},
		{title: shellParked, path: pathParked, engine: inShell, then: inShell},
		{title: toShell, path: pathCold, engine: inChrome, then: inShell},
		{title: toChrome, path: pathCold, engine: inShell, then: inChrome},
	} {
		w.told, w.extension, w.scratch = told, zipped.Bytes(), filepath.Join(scratch, fmt.Sprint(i))
		w.daemon = &rig.Daemon{Binary: s.binary, UIDs: 1_900_000_000 + 10_000*n + 200*i}
		all = append(all, w)
	}
	rivals := func(name, kind string, passkey bool) {
		all = append(all, &rival{title: name, kind: kind, passkey: passkey, told: told, clients: s.clients, chrome: s.chrome,
			scratch: scratch, extension: extension})
	}
	rivals("Playwright `storageState`", "storageState", true)
	rivals("Playwright persistent context", "persistentContext", false)
	rivals("Puppeteer `userDataDir`", "userDataDir", false)
	var asked []way
	for _, w := range all {
		if strings.Contains(w.name(), s.only) {
			asked = append(asked, w)
		}
	}
	return asked, nil
}

// tryAll tries the ways with each environment, some beside each other, and gives
// their columns.
func tryAll(ctx context.Context, s settings, all []environment, scratch string, site *blank.Site, desktop string) ([]column, error) {
	var columns []column
	var trials [][]column // by environment and way
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n, e := range all {
		var fields obj
		if !e.bare {
			fields = told(site)
		}
		folder := filepath.Join(scratch, fmt.Sprint("e", n))
		if err := os.Mkdir(folder, 0o711); err != nil {
			return nil, err
		}
		ways, err := ways(s, folder, filepath.Join(scratch, "extension", "extension"), n, fields)
		if err != nil {
			return nil, err
		}
		trials = append(trials, make([]column, len(ways)))
		for i, w := range ways {
			group.Go(func() (err error) {
				if trials[n][i], err = try(ctx, w, e, site, desktop); err != nil {
					return fmt.Errorf("%s: %w", w.name(), err)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, c := range trials[0] {
		for _, more := range trials[1:] {
			c.cells = append(c.cells, more[i].cells...)
		}
		columns = append(columns, c)
	}
	return columns, nil
}
