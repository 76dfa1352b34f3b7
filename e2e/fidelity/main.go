// Fidelity tries which kinds of state survive each method of keeping a browser, and
// writes the table of docs/fidelity.md.
//
// Each method starts with the same user data directory and makes every kind of state in
// its browser. It then saves, restores, and reads the state with the same steps. The
// table contains only what was tried.
//
// Fidelity exits with 1 in two cases: a Stasis column loses a kind that is not listed as
// impossible, or a client library keeps a kind that a Stasis column loses.
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
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/stasisd/stasis/e2e/apps/blank"
	"github.com/stasisd/stasis/e2e/rig"
)

// atOnce is how many methods run in parallel. Each has one Chrome, or two if one is kept
// ready.
const atOnce = 2

func main() {
	var s settings
	flag.StringVar(&s.binary, "stasis", "bin/stasis", "path of the stasis binary")
	flag.StringVar(&s.chrome, "chrome", "/usr/lib/chromium/chromium", "path of the Chrome binary")
	flag.StringVar(&s.clients, "clients", "e2e/clients", "folder with the client libraries and their scripts")
	flag.StringVar(&s.out, "out", "docs/fidelity.md", "file to write the table to")
	flag.StringVar(&s.only, "only", "", "try only methods whose name contains this text, and write to standard output")
	flag.Parse()
	rig.Main("fidelity", func(ctx context.Context) error { return run(ctx, s) })
}

//go:embed extension
var extensionFiles embed.FS

// settings are the command's flags.
type settings struct{ binary, chrome, clients, out, only string }

func run(ctx context.Context, s settings) (err error) {
	scratch, err := rig.Scratch("fi-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
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

// methods returns the methods for the n-th environment, those of Stasis first. They keep
// their files in the scratch folder.
func methods(s settings, scratch, extension string, n int, overrides obj) ([]method, error) {
	var zipped bytes.Buffer
	if overrides != nil {
		zip := zip.NewWriter(&zipped)
		if err := errors.Join(zip.AddFS(extensionFiles), zip.Close()); err != nil {
			return nil, err
		}
	}
	var all []method
	for i, w := range []*stasis{
		{title: cold, path: pathCold, engine: inChrome, then: inChrome},
		{title: warm, path: pathWarm, engine: inChrome, then: inChrome},
		{title: gated, path: pathWarm, gates: true, engine: inChrome, then: inChrome},
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
		w.overrides, w.extension, w.scratch = overrides, zipped.Bytes(), filepath.Join(scratch, fmt.Sprint(i))
		w.daemon = &rig.Daemon{Binary: s.binary, UIDs: 1_900_000_000 + 10_000*n + 200*i}
		all = append(all, w)
	}
	addLibrary := func(name, kind string, passkey bool) {
		all = append(all, &library{title: name, kind: kind, passkey: passkey, overrides: overrides, clients: s.clients, chrome: s.chrome,
			scratch: scratch, extension: extension})
	}
	addLibrary("Playwright `storageState`", "storageState", true)
	addLibrary("Playwright persistent context", "persistentContext", false)
	addLibrary("Puppeteer `userDataDir`", "userDataDir", false)
	var selected []method
	for _, w := range all {
		if strings.Contains(w.name(), s.only) {
			selected = append(selected, w)
		}
	}
	return selected, nil
}

// tryAll tries the methods with each environment, some in parallel, and returns their
// columns.
func tryAll(ctx context.Context, s settings, all []environment, scratch string, site *blank.Site, desktop string) ([]column, error) {
	var columns []column
	var trials [][]column // by environment and method
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n, e := range all {
		var fields obj
		if !e.bare {
			fields = overrides(site)
		}
		folder := filepath.Join(scratch, fmt.Sprint("e", n))
		if err := os.Mkdir(folder, 0o711); err != nil {
			return nil, err
		}
		methods, err := methods(s, folder, filepath.Join(scratch, "extension", "extension"), n, fields)
		if err != nil {
			return nil, err
		}
		trials = append(trials, make([]column, len(methods)))
		for i, w := range methods {
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
