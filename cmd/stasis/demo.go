//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/session/restore"
)

// demoDeadline limits the whole demo; it takes some seconds.
const demoDeadline = 3 * time.Minute

// demoCmd shows on a built-in site what Stasis is for: log in once, save, restore, still
// logged in, in both modes. It runs its own daemon and leaves no files behind.
type demoCmd struct {
	Chrome     string `help:"Chrome's binary; by default the usual paths are searched." placeholder:"PATH"`
	NoLandlock bool   `help:"Start Chromes without Landlock, as serve does." name:"no-landlock" env:"-"`
}

// Run runs the demo. It fails unless, after both restores, the browser is logged in and has
// everything that the site stored in it.
func (c *demoCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoDeadline)
	defer cancel()
	d := demo{out: os.Stdout, value: "kept", kinds: demosite.Kinds()}
	err := d.run(ctx, c.Chrome, c.NoLandlock)
	if errors.Is(ctx.Err(), context.Canceled) {
		return exitError{exitFailed, "the demo was stopped"}
	}
	return err
}

// demo is one run of the demo.
type demo struct {
	out      io.Writer
	value    string   // what the site stores everywhere
	kinds    []string // the places where it stores it
	site     *demosite.Site
	daemon   *demoDaemon
	restored []restoredState // one for each restore
}

func (d *demo) run(ctx context.Context, chrome string, noLandlock bool) (err error) {
	if d.site, err = demosite.Start(nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.site.Close()) }()
	d.heading()
	if err := d.step("start a daemon", func() (_ string, err error) {
		d.daemon, err = startDemoDaemon(ctx, chrome, noLandlock)
		return "", err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.daemon.stop()) }()

	first, err := d.logIn(ctx)
	if err != nil {
		return err
	}
	files := url.Values{"save_snapshot_mode": {"filesystem"}, "save_as_default": {"true"}}
	if err := d.end(ctx, "save it as files and as the default", first, files); err != nil {
		return err
	}
	second, err := d.restore(ctx, "filesystem", "restore the user's default",
		map[string]any{"restore_default_environment_from_user_id": first.UserID})
	if err != nil {
		return err
	}
	if err := d.end(ctx, "save it in memory", second, url.Values{"save_snapshot_mode": {"memory"}}); err != nil {
		return err
	}
	third, err := d.restore(ctx, "memory", "restore that session",
		map[string]any{"restore_from_session_id": second.ID})
	if err != nil {
		return err
	}
	if err := d.end(ctx, "end it without a save", third, nil); err != nil {
		return err
	}
	d.table()
	return d.verdict()
}

// logIn creates a session, logs in through the site's form, and lets the site store a value
// in every place.
func (d *demo) logIn(ctx context.Context) (s demoSession, err error) {
	if err := d.step("create a session", func() (string, error) {
		s, err = d.daemon.create(ctx, map[string]any{"user_id": "demo-user"})
		return "", err
	}); err != nil {
		return s, err
	}
	tab, leave, err := openTab(ctx, s.CDPURL, "")
	if err != nil {
		return s, err
	}
	defer leave()
	if err := d.step("log in through the site's form", func() (string, error) {
		return "", logIn(tab, d.site.URL)
	}); err != nil {
		return s, err
	}
	return s, d.step("let the site store a value in every place", func() (string, error) {
		if err := show(tab, d.site.URL+"/set?v="+d.value, "set"); err != nil {
			return "", err
		}
		// The tab stays on a page that sets nothing when it is restored.
		return "", show(tab, d.site.URL+"/me", "me: "+demosite.User)
	})
}

// restore creates a session from an environment and reads what was restored.
func (d *demo) restore(ctx context.Context, column, name string, from map[string]any) (s demoSession, err error) {
	if err := d.step(name, func() (string, error) {
		s, err = d.daemon.create(ctx, from)
		if err == nil && s.Restored == nil {
			err = errors.New("the new session was not restored from anything")
		}
		if err != nil {
			return "", err
		}
		return restorePath(*s.Restored), nil
	}); err != nil {
		return s, err
	}
	l := restoredState{column: column}
	if err := d.step("check what was restored", func() (string, error) {
		tab, leave, err := openTab(ctx, s.CDPURL, d.site.URL)
		if err != nil {
			return "", err
		}
		defer leave()
		l.user, l.found, err = readBack(tab, d.site.URL)
		return "", err
	}); err != nil {
		return s, err
	}
	l.report, err = d.daemon.report(ctx, s.ID)
	d.restored = append(d.restored, l)
	return s, err
}

// end ends a session and prints what was saved.
func (d *demo) end(ctx context.Context, name string, s demoSession, how url.Values) error {
	return d.step(name, func() (string, error) {
		answer, err := d.daemon.endSession(ctx, s.ID, how)
		if err != nil {
			return "", err
		}
		return saveSummary(answer), nil
	})
}

// restoredState is what a restored session contains.
type restoredState struct {
	column string
	report restore.Report
	user   string            // the account that the site recognises; "" for none
	found  map[string]string // by kind
}
