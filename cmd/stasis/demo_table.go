//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// How the table marks a place, and a figure that a report does not have.
const (
	wordRestored = "restored"
	wordLost     = "LOST"
	noFigure     = "-"
)

func (d *demo) print(format string, values ...any) {
	_, _ = fmt.Fprintf(d.out, format, values...) // a closed output is not an error of the demo
}

func (d *demo) heading() {
	d.print("One login, saved and restored twice, on a site that stores state in %d places\n\n", len(d.kinds))
}

// step runs one step of the demo and prints its name, its duration and a remark.
func (d *demo) step(name string, do func() (string, error)) error {
	began := time.Now()
	remark, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	line := fmt.Sprintf("  %-41s %5d ms   %s", name, time.Since(began).Milliseconds(), remark)
	d.print("%s\n", strings.TrimRight(line, " "))
	return nil
}

// restorePath returns the restore path in words, from the report of the restore.
func restorePath(r restore.Report) string {
	way := r.Path + " start from its files"
	if r.Path == restore.PathParked {
		way = "its parked Chrome, thawed"
	}
	if r.FallbackReason != "" {
		way += " (" + r.FallbackReason + ")"
	}
	return way
}

// saveSummary describes what an end saved.
func saveSummary(a save.EndAnswer) string {
	if a.Snapshot == nil {
		return ""
	}
	text := fmt.Sprintf("%d kB, sealed", (a.Snapshot.SizeBytes+999)/1000)
	if a.Default != nil && a.Default.Moved {
		text += fmt.Sprintf("; the default is at version %d", a.Default.Version)
	}
	return text
}

// table prints what was restored: what the site finds in each place, and what the restore
// reports count.
func (d *demo) table() {
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(table, "  "+strings.Join(cells, "\t")) }
	columns := func(of func(restoredState) string) (cells []string) {
		for _, l := range d.restored {
			cells = append(cells, of(l))
		}
		return cells
	}
	name := func(l restoredState) string { return l.column }

	d.print("\n")
	row(append([]string{"what the site finds", "saved"}, columns(name)...)...)
	row(append([]string{"login", demosite.User}, columns(func(l restoredState) string { return resultWord(l.user == demosite.User) })...)...)
	for _, kind := range d.kinds {
		row(append([]string{kind, d.value}, columns(func(l restoredState) string { return resultWord(l.found[kind] == d.value) })...)...)
	}
	_ = table.Flush() // as in print
	d.print("\n")
	row(append([]string{"what the restore report counts", "saved"}, columns(name)...)...)
	for _, component := range d.components() {
		saved := noFigure
		restored := columns(func(l restoredState) string {
			was, is, counted := count(l.report.Components, component)
			if !counted {
				return noFigure
			}
			saved = fmt.Sprint(was)
			return fmt.Sprintf("%d of %d", is, was)
		})
		row(append([]string{component, saved}, restored...)...)
	}
	row(append([]string{"verification", ""}, columns(verification)...)...)
	_ = table.Flush() // as in print
	d.print("\n")
}

// verification returns the result of a restore's verification. Without one, the table has
// what the site itself finds.
func verification(l restoredState) string {
	if l.report.Verification == restore.VerificationPending {
		return noFigure
	}
	return l.report.Verification
}

func resultWord(back bool) string {
	if back {
		return wordRestored
	}
	return wordLost
}

// components returns the names that the reports count under, in their order.
func (d *demo) components() (names []string) {
	for _, l := range d.restored {
		for _, c := range l.report.Components {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// count sums up a component over its origins.
func count(report []state.Component, name string) (saved, restored int, counted bool) {
	for _, c := range report {
		if c.Name == name {
			saved, restored, counted = saved+c.Saved, restored+c.Restored, true
		}
	}
	return saved, restored, counted
}

// verdict prints that everything was restored, or returns an error that lists what was
// lost.
func (d *demo) verdict() error {
	var lost []string
	for _, l := range d.restored {
		if l.user != demosite.User {
			lost = append(lost, l.column+": the login")
		}
		for _, kind := range d.kinds {
			if l.found[kind] != d.value {
				lost = append(lost, l.column+": "+kind)
			}
		}
	}
	if lost != nil {
		return exitError{exitFailed, "not everything was restored: " + strings.Join(lost, ", ")}
	}
	d.print("Logged in after both restores, and everything was restored.\n")
	return nil
}
