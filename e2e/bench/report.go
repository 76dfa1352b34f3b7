package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The files that a full run writes.
const (
	pageFile    = "benchmarks.md"
	pictureFile = "benchmarks.svg"
)

const preface = `# What it costs

` + "`make bench`" + ` writes this page. One run on one machine measures Stasis and the tools that you could use instead. Each
round takes every measure once, in a random order. Times are milliseconds: the median, with the bounds of the middle half of
the rounds in brackets. A ratio is the median of the ratios of all rounds. Ratios differ less between machines than times do.

All measures use the same probe site, with one login that stays and some data in every kind of storage. Before each clock
starts, the process of the client library runs, and earlier work has ended. The clock stops at the logged-in page when the
library has read there who is logged in. If root starts them, the other tools run without a sandbox; Stasis always runs with
one. Tools that take a profile get the profile of Stasis's snapshot. Tools that take a ` + "`storageState`" + ` get what Playwright
exports of that profile by default: cookies and localStorage.
`

// report writes the page and the picture. If only some parts were measured, it prints
// their sections instead.
func (b *bench) report() error {
	verdicts := judge(targets(), b.times, b.figures)
	if b.only != "" {
		for _, s := range b.sections() {
			fmt.Print(s.markdown())
		}
		fmt.Print(targetSection(verdicts, true).markdown())
		return nil
	}
	var note strings.Builder
	note.WriteString(preface + "\n" + summary(verdicts) + "\n\n")
	note.WriteString(targetSection(verdicts, false).markdown())
	fmt.Fprintf(&note, "![Times to a page that answers, and to the logged-in page](%s)\n\n", pictureFile)
	for _, s := range b.sections() {
		note.WriteString(s.markdown())
	}
	note.WriteString(section{title: "The machine",
		text: fmt.Sprintf("`make bench`, %d rounds, seed %d.", b.rounds, b.seed), head: []string{"", ""}, rows: b.machine}.markdown())
	path := filepath.Join(b.folder, pageFile)
	runSoak, err := soakOf(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(note.String()+runSoak), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.folder, pictureFile), []byte(b.picture().svg()), 0o644); err != nil {
		return err
	}
	fmt.Print(targetSection(verdicts, false).markdown())
	return nil
}

// summary is the sentence of the introduction that says how many targets were missed.
func summary(verdicts []verdict) string {
	missed, measured := 0, 0
	for _, v := range verdicts {
		if v.missing() {
			continue
		}
		measured++
		if !v.met() {
			missed++
		}
	}
	return fmt.Sprintf("In this run Stasis missed %d of %d targets; the first table shows which.", missed, measured)
}

// targetSection is the table of targets with the measured values.
func targetSection(verdicts []verdict, leaveOut bool) section {
	s := section{title: "Targets", head: []string{"measure", "id", "relative to, or unit", "measured", "at most", ""}}
	for _, v := range verdicts {
		outcome := "**missed**"
		if v.met() {
			outcome = "met"
		}
		if v.missing() {
			if leaveOut {
				continue
			}
			outcome = ""
		}
		s.rows = append(s.rows, []string{v.target, "`" + v.measure + "`", v.against, v.value(), number(v.most), outcome})
	}
	return s
}

// sections returns the sections of the page: first those of the rounds, then those of
// the surveys.
func (b *bench) sections() []section {
	var all []section
	if len(b.times["cdp/bare"]) > 0 {
		all = append(all, b.restoreSection(), b.stepsSection())
	}
	if len(b.times["save/none"]) > 0 {
		all = append(all, b.saveSection())
	}
	if len(b.times["cycle/stasis"]) > 0 {
		all = append(all, b.cycleSection())
	}
	if len(b.times["landlock/chrome"]) > 0 {
		all = append(all, b.landlockSection())
	}
	return append(all, b.surveyed...)
}

// restoreSection has the times of every restore path of Stasis and of every other tool.
func (b *bench) restoreSection() section {
	s := section{
		title: "Restores",
		text: `The first column of times is from the request for a browser to a script's answer in its front page, over a plain CDP
connection. The second is to the logged-in page in the client library: Puppeteer for Stasis, its own library for each other
tool. Bare Chrome is ` + "`--headless=new`" + ` alone, through its pipe.`,
		head: []string{"browser", "a page answers CDP, ms", "× bare Chrome on the profile", "logged-in page, ms", "× `storageState`, warm headless-shell"},
	}
	add := func(title, name string) {
		cdp, login := "cdp/"+name, "login/"+name
		if len(b.times[cdp])+len(b.times[login]) == 0 {
			return // was not measured on this machine
		}
		s.rows = append(s.rows, []string{title,
			spread(b.times[cdp]).String(), ratios(b.times[cdp], b.times[bareOnProfile]).ratio(),
			spread(b.times[login]).String(), ratios(b.times[login], b.times[shellState]).ratio()})
	}
	for _, w := range scenarios() {
		add("Stasis: "+w.title, w.name)
	}
	for _, r := range otherTools() {
		add(r.title, r.name)
	}
	add("bare Chrome on the profile", "bare")
	add("bare Chrome, empty", "bare-empty")
	return s
}

// stepsSection shows the steps to the logged-in page.
func (b *bench) stepsSection() section {
	s := section{
		title: "Where the time goes",
		text:  "Milliseconds from the create to each step, measured in the client.",
		head:  []string{"session", "create answered", "connected", "first page found", "logged-in page"},
	}
	for _, w := range scenarios() {
		if len(b.times["login/"+w.name]) == 0 {
			continue
		}
		row := []string{w.title}
		for _, mark := range []string{" created", " connected", " page", ""} {
			row = append(row, spread(b.times["login/"+w.name+mark]).String())
		}
		s.rows = append(s.rows, row)
	}
	return s
}

func (b *bench) saveSection() section {
	s := section{
		title: "Ending a session",
		text:  "Time from the delete of a session of the probe profile to its answer. If it saves, the answer comes when the snapshot is stored and verified.",
		head:  []string{"`save_snapshot_mode`", "ms", "× bare Chrome on the profile"},
	}
	for _, mode := range modes() {
		id := "save/" + mode
		s.rows = append(s.rows, []string{mode, spread(b.times[id]).String(), ratios(b.times[id], b.times[bareOnProfile]).ratio()})
	}
	return s
}

func (b *bench) cycleSection() section {
	ours, theirs := b.times["cycle/stasis"], b.times["cycle/puppeteer"]
	return section{
		title: "A whole session",
		text:  "Start an empty browser, visit a page, end the browser.",
		head:  []string{"steps", "ms", "× Puppeteer"},
		rows: [][]string{
			{"Stasis: create → connect → navigate → delete with `none`", spread(ours).String(), ratios(ours, theirs).ratio()},
			{"Puppeteer: launch → navigate → close", spread(theirs).String(), ""},
		},
	}
}

// soakTitle is the heading of the page's last section. The soak writes that section and
// the measurement keeps it.
const soakTitle = "The soak"

// soakOf returns the soak's section of a page; "" if there is none.
func soakOf(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	heading := "## " + soakTitle + "\n"
	if _, after, found := strings.Cut(string(raw), heading); found {
		return heading + after, nil
	}
	return "", nil
}

// replaceSection replaces the section of a page that has the same title, or appends one.
func replaceSection(path string, s section) error {
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, rest, found := strings.Cut(string(raw), "## "+s.title+"\n")
	if i := strings.Index(rest, "\n## "); found && i >= 0 {
		rest = rest[i+1:]
	} else {
		rest = ""
	}
	return os.WriteFile(path, []byte(before+s.markdown()+rest), 0o644)
}
