package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The files that a whole run writes.
const (
	noteFile    = "benchmarks.md"
	pictureFile = "benchmarks.svg"
)

const preface = `# What it costs

` + "`make bench`" + ` writes this page. It measures Stasis and what one would use in its place in one run on one machine, side by
side: each round does every measure once, in an order of its own. Times are milliseconds: the median, and in brackets where
the middle half of the rounds lies. A ratio is the median of the rounds' own ratios. Machines differ; ratios carry over better.

The site is the same for all: the probe site, with one login that stays and something in every place that a browser has.
Before each clock starts, the client library's process is up and whatever ran before is at rest. A way has come to the logged-in
page when the library has read in the page who is logged in. Rivals run without a sandbox where they are started by root,
ours with it; rivals on a profile have the very one that our snapshot holds, and ` + "`storageState`" + ` is what Playwright exports of
it by default: cookies and localStorage.
`

// report writes the note and the picture, or shows the note where only some
// parts were asked for.
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
	note.WriteString(preface + "\n")
	note.WriteString(targetSection(verdicts, false).markdown())
	fmt.Fprintf(&note, "![Times to a page that answers, and to the logged-in page](%s)\n\n", pictureFile)
	for _, s := range b.sections() {
		note.WriteString(s.markdown())
	}
	note.WriteString(section{title: "Where this was measured",
		text: fmt.Sprintf("`make bench`, %d rounds, seed %d.", b.rounds, b.seed), head: []string{"", ""}, rows: b.machine}.markdown())
	path := filepath.Join(b.folder, noteFile)
	soaked, err := soakOf(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(note.String()+soaked), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.folder, pictureFile), []byte(b.picture().svg()), 0o644); err != nil {
		return err
	}
	fmt.Print(targetSection(verdicts, false).markdown())
	return nil
}

// targetSection is the table of what was promised against what was measured.
func targetSection(verdicts []verdict, leaveOut bool) section {
	s := section{title: "Targets", head: []string{"measure", "way", "held to", "measured", "at most", ""}}
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

// sections are the note's parts: those of the rounds, and what was looked at
// after them.
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
	return append(all, b.seen...)
}

// restoreSection has every way of ours and others', to both ends.
func (b *bench) restoreSection() section {
	s := section{
		title: "Coming back",
		text: `From asking for a browser to a script's answer in its front page, by a plain CDP connection; and to the logged-in page in the
client library: Puppeteer for ours, each rival's own for the rest. Bare Chrome is ` + "`--headless=new`" + ` alone, through its pipe.`,
		head: []string{"way", "a page answers CDP, ms", "× bare Chrome on the profile", "logged-in page, ms", "× `storageState`, warm headless-shell"},
	}
	add := func(title, name string) {
		cdp, login := "cdp/"+name, "login/"+name
		if len(b.times[cdp])+len(b.times[login]) == 0 {
			return // not on this machine
		}
		s.rows = append(s.rows, []string{title,
			spread(b.times[cdp]).String(), ratios(b.times[cdp], b.times[bareOnProfile]).ratio(),
			spread(b.times[login]).String(), ratios(b.times[login], b.times[shellState]).ratio()})
	}
	for _, w := range ways() {
		add("Stasis: "+w.title, w.name)
	}
	for _, r := range rivals() {
		add(r.title, r.name)
	}
	add("bare Chrome on the profile", "bare")
	add("bare Chrome, empty", "bare-empty")
	return s
}

// stepsSection shows where the time to the logged-in page goes.
func (b *bench) stepsSection() section {
	s := section{
		title: "Where the time goes",
		text:  "Milliseconds since the create was sent, in the client, until each was there.",
		head:  []string{"way", "create answered", "connected", "page at hand", "logged-in page"},
	}
	for _, w := range ways() {
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
		text:  "From the delete of a session of the probe profile to its answer: with a save, when the snapshot is stored and verified.",
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
		title: "A whole life",
		text:  "An empty browser, a page, and the end.",
		head:  []string{"way", "ms", "× Puppeteer"},
		rows: [][]string{
			{"Stasis: create → connect → navigate → delete with `none`", spread(ours).String(), ratios(ours, theirs).ratio()},
			{"Puppeteer: launch → navigate → close", spread(theirs).String(), ""},
		},
	}
}

// soakTitle heads the last section of the note, which the soak writes and the
// rest of the measuring leaves as it is.
const soakTitle = "The soak"

// soakOf is the soak's section of a note, "" without one.
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

// keepSoak puts a section in the place of the note's last soak, or behind all.
func keepSoak(path string, s section) error {
	raw, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, _, _ := strings.Cut(string(raw), "## "+soakTitle+"\n")
	return os.WriteFile(path, []byte(before+s.markdown()), 0o644)
}
