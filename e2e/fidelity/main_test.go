package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps/blank"
)

// chrome is the path of Chrome on Debian.
const chrome = "/usr/lib/chromium/chromium"

// A fresh browser has no kind, and a browser in which they were made has all. So no
// reading is a constant, and each shows a loss.
func TestReadingsDiffer(t *testing.T) {
	t.Parallel()
	site := start(t)
	apps, stop, err := startApplications(t.TempDir())
	t.Cleanup(stop)
	if err != nil {
		t.Fatal(err)
	}
	extension, err := filepath.Abs("extension")
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--load-extension=" + extension}
	for n, e := range environments(apps) {
		t.Run(fmt.Sprint("environment ", n), func(t *testing.T) {
			t.Parallel()
			rows := slices.DeleteFunc(e.kinds, func(k kind) bool { return k.where == inFiles })
			if err := inPlainChrome(t.Context(), chrome, filepath.Join(t.TempDir(), "d"), flags, func(endpoint string) error {
				fresh, err := survey(t.Context(), &visit{site: site}, endpoint, rows, false)
				if err != nil {
					return err
				}
				made, err := survey(t.Context(), &visit{site: site}, endpoint, rows, true)
				if err != nil {
					return err
				}
				for i, k := range rows {
					if fresh[i].text != "" {
						t.Errorf("%s: a fresh browser has it: %s; want none", k.name, fresh[i].text)
					}
					if k.seed != nil && (made[i].text == "" || made[i].err != nil) {
						t.Errorf("%s: not there after it was made: %v", k.name, made[i].err)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// State that a user makes in Chrome's own windows is in the profile only after
// addByHand.
func TestDesktop(t *testing.T) {
	t.Parallel()
	site := start(t)
	dir := filepath.Join(t.TempDir(), "d")
	rows := slices.DeleteFunc(kinds(), func(k kind) bool { return k.where != inFiles })
	visited := site.Origin(visitedHost) + "/"
	if _, err := visitOnce(t.Context(), chrome, dir, visited); err != nil {
		t.Fatal(err)
	}
	check := func(want func(kind) bool) {
		readings := make([]reading, len(rows))
		files(t.Context(), rows, dir, readings)
		for i, k := range rows {
			if r := readings[i]; r.err != nil || (r.text != "") != want(k) {
				t.Errorf("%s: read %q, error %v", k.name, r.text, r.err)
			}
		}
	}
	check(func(k kind) bool { return k.name == "history" })
	if err := addByHand(t.Context(), dir, site, visited); err != nil {
		t.Fatal(err)
	}
	check(func(kind) bool { return true })
}

// compare returns the right word for each outcome.
func TestCompare(t *testing.T) {
	there := reading{text: `{"a": 1, "b": 2}`}
	for want, c := range map[string]cell{
		kept:    compare(there, there),
		changed: compare(there, reading{text: `{"a": 1, "b": 3, "c": 4}`}),
		lost:    compare(there, reading{}),
		absent:  compare(reading{}, reading{}),
	} {
		if c.outcome != want {
			t.Errorf("compare gave %+v, want %s", c, want)
		}
		if want == changed && c.why != "b, c differ" {
			t.Errorf("differing fields: %s", c.why)
		}
	}
}

// verdict fails if a Stasis column loses something or a library keeps more.
func TestVerdict(t *testing.T) {
	excused := "sessionStorage: a lone surrogate in a key"
	rows := []kind{{name: "one"}, {name: excused}}
	results := func(name string, outcomes ...string) column {
		c := column{name: name}
		for _, s := range outcomes {
			c.cells = append(c.cells, cell{outcome: s})
		}
		return c
	}
	for name, test := range map[string]struct {
		columns []column
		wrong   int
	}{
		"whole":                      {[]column{results(cold, kept, kept), results("other", kept, kept)}, 0},
		"portable need not be whole": {[]column{results(cold, kept, kept), results(portable, lost, lost)}, 0},
		"lost":                       {[]column{results(cold, lost, kept), results("other", lost, kept)}, 1},
		"lost by one":                {[]column{results(cold, kept, kept), results(otherDirectory, changed, kept)}, 1},
		"excused":                    {[]column{results(cold, kept, lost), results("other", lost, lost)}, 0},
		"excused, in parked":         {[]column{results(cold, kept, lost), results(parked, kept, kept)}, 0},
		"excused, another has it":    {[]column{results(cold, kept, lost), results("other", lost, kept)}, 1},
		"lost, another has it":       {[]column{results(cold, absent, kept), results("other", kept, lost)}, 2},
		"takes another path":         {[]column{results(cold, kept, kept), results(warm, otherPath, kept), results("other", kept, kept)}, 0},
		"the shell loses it":         {[]column{results(shellCold, lost, lost), results(shellWarm, lost, lost)}, 0},
		"a warm shell loses it":      {[]column{results(shellCold, kept, lost), results(shellWarm, changed, kept)}, 1},
	} {
		err := (&table{rows: rows, columns: test.columns}).verdict()
		wrong := 0
		if err != nil {
			wrong = len(strings.Split(err.Error(), "\n"))
		}
		if wrong != test.wrong {
			t.Errorf("%s: %d errors, want %d: %v", name, wrong, test.wrong, err)
		}
	}
	noScripts := table{rows: plain()[:1], columns: []column{results(shellCold, lost)}}
	if noScripts.verdict() == nil {
		t.Error("verdict accepts that the shell loses what is in a page without scripts")
	}
	for name := range impossible {
		if !slices.ContainsFunc(kinds(), func(k kind) bool { return k.name == name }) {
			t.Errorf("impossible has %q, which is not a row", name)
		}
	}
	for name := range fieldOf {
		if !slices.ContainsFunc(kinds(), func(k kind) bool { return k.name == name }) {
			t.Errorf("fieldOf has %q, which is not a row", name)
		}
	}
}

func start(t *testing.T) *blank.Site {
	t.Helper()
	site, err := blank.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := site.Close(); err != nil {
			t.Error(err)
		}
	})
	return site
}

// A known detail becomes a sentence in its own kind only. Every explanation names a kind
// of the table.
func TestExplain(t *testing.T) {
	if got := explain("IndexedDB: auto-increment continues", "3, was 6"); !strings.HasPrefix(got, "The next key is 3") {
		t.Errorf("explained: %q", got)
	}
	if got := explain("history", "3, was 6"); got != "3, was 6" {
		t.Errorf("another kind: %q, want the detail unchanged", got)
	}
	for _, e := range explanations {
		if !slices.ContainsFunc(kinds(), func(k kind) bool { return strings.HasPrefix(k.name, e.kind) }) {
			t.Errorf("no row begins with %q", e.kind)
		}
	}
}
