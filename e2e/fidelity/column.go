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

// What a cell says.
const (
	kept    = "kept"
	changed = "in part"
	lost    = "lost"
	absent  = "cannot have it" // it was not even there before leaving
	another = "another way"    // an environment that has it comes back in another way
)

// pageStateDelay is a little more than what a page's process takes to tell the
// browser of scrolling and of forms: 1 s in front, 5 s behind (measured; in
// Chromium's RenderFrameImpl the delays of StartDelayedSyncTimer). What is
// changed less than that before Chrome closes does not reach its session files.
const pageStateDelay = 6 * time.Second

// cell is how one kind fared in one way.
type cell struct {
	says string
	why  string // more about it, where there is more
}

// column is how all kinds fared in one way, in their order.
type column struct {
	name  string
	cells []cell
}

// try takes a way from its beginning to its end, with every kind of an environment in it. Kinds
// that could not be carried are in the column; an error is for what has
// nothing to do with them.
func try(ctx context.Context, w way, e environment, site *blank.Site, desktop string) (_ column, err error) {
	rows := e.kinds
	c := column{name: w.name(), cells: make([]cell, len(rows))}
	defer func() { err = errors.Join(err, w.release()) }()

	endpoint, err := w.open(ctx, desktop)
	if err != nil {
		return c, fmt.Errorf("start: %w", err)
	}
	before, err := survey(ctx, &visit{site: site, passkeys: w.passkeys()}, endpoint, rows, true)
	if err != nil {
		return c, fmt.Errorf("before leaving: %w", err)
	}
	files(ctx, rows, desktop, before)
	// Not a wait for something to happen: Chrome's own delay, which nothing tells
	// the end of.
	if !e.bare { // which has neither scroll positions nor forms
		select {
		case <-time.After(pageStateDelay):
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
	endpoint, err = w.comeBack(ctx)
	if err != nil {
		return c, fmt.Errorf("coming back: %w", err)
	}
	after, err := survey(ctx, &visit{site: site, passkeys: w.passkeys(), readings: 1}, endpoint, rows, false)
	if err != nil {
		return c, fmt.Errorf("after coming back: %w", err)
	}
	dir, err := w.end(ctx)
	if err != nil {
		return c, fmt.Errorf("end: %w", err)
	}
	files(ctx, rows, dir, after)
	fields, why := w.otherwise()
	for i, k := range rows {
		c.cells[i] = compare(before[i], after[i])
		if c.cells[i].says == absent && slices.Contains(fields, fieldOf[k.name]) {
			c.cells[i] = cell{another, why}
		}
	}
	return c, nil
}

// reading is what a kind's reading gave.
type reading struct {
	text string
	err  error
}

// survey reads every kind that lives in a browser. With fill they are made
// first. Those in open tabs are read first after coming back, before any other
// tab is opened, and made last, with no other tab left.
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

// files reads the kinds in a closed profile.
func files(ctx context.Context, rows []kind, dir string, readings []reading) {
	each(ctx, &visit{dir: dir}, rows, inFiles, false, readings)
}

// each makes and reads the kinds of one place: first all are made, then all
// are read, so that each is read with the others there.
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

// compare tells how a kind fared.
func compare(before, after reading) cell {
	switch {
	case before.err != nil:
		return cell{absent, before.err.Error()}
	case before.text == "":
		return cell{says: absent}
	case after.err != nil:
		return cell{lost, after.err.Error()}
	case after.text == "":
		return cell{says: lost}
	case after.text != before.text:
		return cell{changed, difference(before.text, after.text)}
	}
	return cell{says: kept}
}

// difference names the fields that differ where both readings are JSON
// objects; else it gives both.
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
