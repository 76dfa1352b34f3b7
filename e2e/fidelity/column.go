package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/e2e/apps/blank"
)

// The words of a cell.
const (
	kept      = "kept"
	changed   = "in part"
	lost      = "lost"
	absent    = "cannot have it" // was not there before the save either
	otherPath = "other path"     // the restore of an environment that has it takes another path
)

// pageStateDelay is a little longer than a page's process waits before it reports scroll
// positions and forms to the browser. That takes 1 s in front and 5 s behind (measured;
// in Chromium, the delays of RenderFrameImpl's StartDelayedSyncTimer). Later changes do
// not reach Chrome's session files before it closes.
const pageStateDelay = 6 * time.Second

// cell is the result of one kind under one method.
type cell struct {
	outcome string
	why     string // detail, if there is any
}

// column is the results of all kinds under one method, in the order of the rows.
type column struct {
	name  string
	cells []cell
}

// try runs a method from start to end with every kind of an environment, and returns its
// column. A kind that did not survive is in the column. The error is for failures of the
// run itself.
func try(ctx context.Context, w method, e environment, site *blank.Site, desktop string) (_ column, err error) {
	rows := e.kinds
	c := column{name: w.name(), cells: make([]cell, len(rows))}
	defer func() { err = errors.Join(err, w.release()) }()

	endpoint, err := w.open(ctx, desktop)
	if err != nil {
		return c, fmt.Errorf("cannot start the first browser: %w", err)
	}
	before, err := survey(ctx, &visit{site: site, passkeys: w.passkeys()}, endpoint, rows, true)
	if err != nil {
		return c, fmt.Errorf("cannot make and read the state before the save: %w", err)
	}
	files(ctx, rows, desktop, before)
	// No event marks the end of this delay of Chrome's, so this is a plain wait.
	if !e.bare { // bare environments have neither scroll positions nor forms
		select {
		case <-time.After(pageStateDelay):
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
	endpoint, err = w.restore(ctx)
	if err != nil {
		return c, fmt.Errorf("cannot restore: %w", err)
	}
	after, err := survey(ctx, &visit{site: site, passkeys: w.passkeys(), readings: 1}, endpoint, rows, false)
	if err != nil {
		return c, fmt.Errorf("cannot read the state after the restore: %w", err)
	}
	dir, err := w.end(ctx)
	if err != nil {
		return c, fmt.Errorf("cannot close the restored browser: %w", err)
	}
	files(ctx, rows, dir, after)
	fields, why := w.excluded()
	for i, k := range rows {
		c.cells[i] = compare(before[i], after[i])
		if c.cells[i].outcome == absent && slices.Contains(fields, fieldOf[k.name]) {
			c.cells[i] = cell{otherPath, why}
		}
	}
	return c, nil
}

// reading is the text that a kind's read step gave, or its error.
type reading struct {
	text string
	err  error
}

// survey reads every kind that lives in a browser. With fill it makes them first. It
// makes kinds in open tabs last, so that no other tab is left. After the restore it
// reads them first, before it opens any other tab.
func survey(ctx context.Context, at *visit, endpoint string, rows []kind, fill bool) ([]reading, error) {
	b, err := connect(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	at.browser = b
	readings := slices.Repeat([]reading{{}}, len(rows))
	inPages := func() error {
		if !slices.ContainsFunc(rows, func(k kind) bool { return k.where == inPage }) {
			return nil
		}
		if at.work, err = b.open(ctx, at.site.Origin("a")+"/?frame=b"); err != nil {
			return err
		}
		each(ctx, at, rows, inPage, fill, readings)
		return at.work.shut(ctx)
	}
	if fill {
		if err := inPages(); err != nil {
			return nil, err
		}
	}
	each(ctx, at, rows, inTabs, fill, readings)
	if !fill {
		if err := inPages(); err != nil {
			return nil, err
		}
	}
	return readings, nil
}

// files reads the kinds that are in the files of a closed profile.
func files(ctx context.Context, rows []kind, dir string, readings []reading) {
	each(ctx, &visit{dir: dir}, rows, inFiles, false, readings)
}

// each makes and reads the kinds of one place. It makes all before it reads any, so that
// each is read while the others are there.
func each(ctx context.Context, at *visit, rows []kind, where place, fill bool, readings []reading) {
	for i, k := range rows {
		if k.where == where && fill && k.seed != nil {
			if _, err := k.seed(ctx, at); err != nil {
				readings[i].err = fmt.Errorf("not made: %w", err)
			}
		}
	}
	for i, k := range rows {
		if k.where == where && readings[i].err == nil {
			readings[i].text, readings[i].err = k.read(ctx, at)
		}
	}
}

// compare returns the cell for a kind's readings before the save and after the restore.
func compare(before, after reading) cell {
	switch {
	case before.err != nil:
		return cell{absent, before.err.Error()}
	case before.text == "":
		return cell{outcome: absent}
	case after.err != nil:
		return cell{lost, after.err.Error()}
	case after.text == "":
		return cell{outcome: lost}
	case after.text != before.text:
		return cell{changed, difference(before.text, after.text)}
	}
	return cell{outcome: kept}
}

// difference names the fields that differ if both readings are JSON objects. Otherwise
// it gives both readings.
func difference(before, after string) string {
	var was, is map[string]any
	if json.Unmarshal([]byte(before), &was) != nil || json.Unmarshal([]byte(after), &is) != nil {
		return fmt.Sprintf("%s, was %s", after, before)
	}
	var names []string
	for name := range was {
		if fmt.Sprint(was[name]) != fmt.Sprint(is[name]) {
			names = append(names, name)
		}
	}
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " differ"
}
