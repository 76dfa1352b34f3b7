package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/stasisd/stasis/e2e/rig"
)

// firstUID is the first user ID of the daemon's Chromes.
const firstUID = 1_900_000_000

var (
	engines = []string{"chrome", "shell"}
	paths   = []string{fresh, warm, standby, parked, thawed}
	clients = []string{"puppeteer", "playwright"}
)

// progressEvery is the number of fields between two progress messages.
const progressEvery = 60

// measured is the result that the command prints.
type measured struct{ sessions, control table }

// measure types into the fields of sessions and of bare Chromes. With an error it
// returns what it has measured so far.
func measure(ctx context.Context, s settings, dir string) (m measured, err error) {
	site := startSite()
	defer site.Close()
	d := &sessions{Daemon: &rig.Daemon{Binary: s.binary, Dir: filepath.Join(dir, "data"), UIDs: firstUID,
		Args: []string{"--chrome", s.chrome, "--shell", s.shell},
		Env: []string{fmt.Sprint("STASIS_SPARES=", s.lanes), fmt.Sprint("STASIS_SHELL_SPARES=", s.lanes),
			fmt.Sprint("STASIS_STANDBY=", len(engines))}}}
	if err := d.Start(ctx); err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, d.Stop(syscall.SIGTERM)) }()
	first, err := startClient(s.clients)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	if err := d.prepare(ctx, site, first, rows(s.few)); err != nil {
		return m, err
	}
	if m.control, err = control(ctx, s, d, dir, site, first); err != nil {
		return m, fmt.Errorf("cannot measure the control: %w", err)
	}
	m.sessions, err = tryAll(ctx, s, d, site)
	return m, err
}

// rows returns the rows of the sessions' table, in an order that mixes restore paths and
// engines. Few rows have each path once, and each client with each engine.
func rows(few bool) []row {
	var rows []row
	for c, client := range clients {
		for p, path := range paths {
			for e, engine := range engines {
				if !few || e == p%2 && c == (p+p/2)%2 {
					rows = append(rows, row{path, client, engine})
				}
			}
		}
	}
	return rows
}

// tryAll opens sessions, some at once, until each row has its share of the count.
func tryAll(ctx context.Context, s settings, d *sessions, site *site) (table, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan row)
	sums, mu, lanes := table{}, sync.Mutex{}, sync.WaitGroup{}
	for range s.lanes {
		lanes.Go(func() {
			if err := lane(ctx, s, d, site, todo, func(r row, lost int) {
				mu.Lock()
				defer mu.Unlock()
				sums.add(r, fieldsPerBrowser, lost)
				if all := sums.sum(); all.tried%progressEvery == 0 {
					fmt.Fprintf(os.Stderr, "%d fields tried, %d lost\n", all.tried, all.lost)
				}
			}); err != nil {
				cancel(err)
			}
		})
	}
	rows := rows(s.few)
	each := len(rows) * fieldsPerBrowser
	for range (s.count + each - 1) / each {
		for _, r := range rows {
			select {
			case todo <- r:
			case <-ctx.Done():
			}
		}
	}
	close(todo)
	lanes.Wait()
	if ctx.Err() != nil {
		return sums, context.Cause(ctx)
	}
	return sums, nil
}

// lane opens one session after the other.
func lane(ctx context.Context, s settings, d *sessions, site *site, todo <-chan row, count func(row, int)) (err error) {
	c, err := startClient(s.clients)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for r := range todo {
		one, err := d.open(ctx, r.engine, r.path)
		if err != nil {
			return fmt.Errorf("%v: %w", r, err)
		}
		lost, err := c.typeInto(r.client, one.CDP, site)
		if err != nil {
			return fmt.Errorf("%v: %w", r, err)
		}
		count(r, lost)
		if _, err := d.End(ctx, one.ID, "none"); err != nil {
			return fmt.Errorf("%v: %w", r, err)
		}
	}
	return nil
}
