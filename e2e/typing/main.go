// Command typing counts the fields that lose what a client types right after a page has
// loaded. It tries sessions of every restore path and engine with Puppeteer and
// Playwright, while it keeps the machine busy. It exits with status 1 if any field is
// empty or short. Its control does the same with bare Chromes, which have the daemon's
// flags, with and without --allow-pre-commit-input.
//
// It prints a table in Markdown; see docs/typing.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/stasisd/stasis/e2e/rig"
)

func main() {
	rig.Main("typing", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout) })
}

// settings are the command's flags.
type settings struct {
	binary, clients       string
	chrome, shell         string
	count, control, lanes int
	load                  int
	few                   bool
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var s settings
	flags := flag.NewFlagSet("typing", flag.ContinueOnError)
	flags.StringVar(&s.binary, "stasis", "bin/stasis", "path of the stasis binary")
	flags.StringVar(&s.clients, "clients", "e2e/clients", "folder with the client libraries and their scripts")
	flags.StringVar(&s.chrome, "chrome", "/usr/lib/chromium/chromium", "path of the Chrome binary")
	flags.StringVar(&s.shell, "shell", "/usr/lib/chromium/chromium-headless-shell", "path of the headless shell binary")
	flags.IntVar(&s.count, "count", 2000, "how many fields to try in sessions, at least")
	flags.IntVar(&s.control, "control", 100, "how many bare Chromes to start with and without the flag, for each engine")
	flags.IntVar(&s.lanes, "lanes", 2, "how many sessions run at once")
	flags.BoolVar(&s.few, "few", false, "try each restore path once, with the engines and clients in turn")
	flags.IntVar(&s.load, "load", runtime.NumCPU(), "how many processes keep the processors busy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := rig.Scratch("st-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	stopLoad, err := busy(s.load)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopLoad()) }()
	tables, err := measure(ctx, s, dir)
	if _, e := fmt.Fprintf(out, "%d processors, %d processes that keep them busy, %d sessions at once.\n\n%s\n%s",
		runtime.NumCPU(), s.load, s.lanes, tables.sessions, tables.control); err != nil || e != nil {
		return errors.Join(err, e)
	}
	if n := tables.sessions.lost(); n > 0 {
		return fmt.Errorf("%d fields lost typed text; see the table", n)
	}
	return nil
}
