package main

import (
	"fmt"
	"math"
)

// target is one promise: the ratio of a measure to another one of the same run, or a
// figure.
type target struct {
	title string
	of    []string // measures, or figures if to is empty; each is compared
	to    []string // measures; the fastest one counts
	most  float64
	unit  string // of a figure
}

// The measures that most targets are relative to.
const (
	bareOnProfile = "cdp/bare"
	bareEmpty     = "cdp/bare-empty"
	shellState    = "login/state-shell"
)

// targets returns all targets.
func targets() []target {
	return []target{
		{title: "memory or standby restore to a page that answers CDP, × the cold start of bare Chrome on the same profile",
			of: []string{"cdp/memory", "cdp/standby"}, to: []string{bareOnProfile}, most: 0.05},
		{title: "warm filesystem restore to a page that answers CDP, × the cold start of bare Chrome on the same profile",
			of: []string{"cdp/warm", "cdp/shell-warm"}, to: []string{bareOnProfile}, most: 0.2},
		{title: "warm filesystem restore to the logged-in page, × the fastest other tool on full Chrome",
			of: []string{"login/warm"}, to: []string{"login/state-chrome", "login/persistent", "login/userdatadir"}, most: 0.4},
		{title: "warm filesystem restore to the logged-in page, × `storageState` in a warm headless-shell",
			of: []string{"login/warm"}, to: []string{shellState}, most: 0.95},
		{title: "warm filesystem restore in the shell engine to the logged-in page, × `storageState` in a warm headless-shell",
			of: []string{"login/shell-warm"}, to: []string{shellState}, most: 0.8},
		{title: "cold filesystem restore in the shell engine to the logged-in page, × `storageState` in a warm headless-shell",
			of: []string{"login/shell-cold"}, to: []string{shellState}, most: 0.9},
		{title: "memory or standby restore to the logged-in page, × `storageState` in a warm headless-shell",
			of: []string{"login/memory", "login/standby"}, to: []string{shellState}, most: 0.6},
		{title: "fresh create from a spare to a page that answers CDP, × the cold start of bare Chrome on an empty profile",
			of: []string{"cdp/fresh", "cdp/shell-fresh"}, to: []string{bareEmpty}, most: 0.1},
		{title: "delete of the probe profile with a filesystem save, × the cold start of bare Chrome on it",
			of: []string{"save/filesystem"}, to: []string{bareOnProfile}, most: 0.6},
		{title: "create → connect → navigate → delete with `none`, × Puppeteer's launch → navigate → close",
			of: []string{"cycle/stasis"}, to: []string{"cycle/puppeteer"}, most: 0.5},
		{title: "extra time of a CDP command and its answer through the multiplexer",
			of: []string{"cdp/extra"}, most: 100, unit: "µs"},
		{title: "processor time of a CDP command and its answer in the daemon, × a bare relay's",
			of: []string{"cdp/processor"}, most: 1.5, unit: "the relay's"},
		{title: "a screenshot through the multiplexer, × a screenshot on a direct connection",
			of: []string{"cdp/screenshots"}, most: 1.05, unit: "direct"},
		{title: "input in the live view to the picture that shows its effect, painted in the viewer's browser",
			of: []string{"view/chrome", "view/shell"}, most: 80, unit: "ms"},
		{title: "a still page in the live view", of: []string{"view/still"}, most: 5, unit: "% of a core"},
		{title: "extra time of a client's CDP command while somebody watches", of: []string{"view/extra"}, most: 50, unit: "µs"},
		{title: "a typed character in the live view over 2 Mbit/s and 150 ms, beside an animation", of: []string{"view/slow"}, most: 500, unit: "ms"},
		{title: fmt.Sprintf("first byte of a page of the console, 95th percentile: with %d sessions and %d snapshots, more than without", consoleSessions, consoleSnapshots),
			of: []string{"console/extra"}, most: 25, unit: "ms"},
		{title: "restore of the probe profile with 100 MB more in its caches, × one without them",
			of: []string{"size/100"}, most: 1.3, unit: "without"},
		{title: "archive of the probe profile", of: []string{"size/probe"}, most: 100, unit: "KB"},
		{title: "start of a daemon to its first answer, after a `kill -9` with eight sessions",
			of: []string{"restart/calls"}, most: 2000, unit: "ms"},
		{title: "the daemon's own memory with 20 sessions", of: []string{"memory/daemon"}, most: 100, unit: "MB"},
	}
}

// verdict is the result of one measure and its target.
type verdict struct {
	target   string
	measure  string // the measure's id
	measured quartiles
	against  string // what it is relative to: a measure's id, or the unit
	most     float64
}

// met reports whether the median keeps the target.
func (v verdict) met() bool { return v.measured.median <= v.most }

// missing reports whether the measure was not taken.
func (v verdict) missing() bool { return math.IsNaN(v.measured.median) }

// value formats the measured value.
func (v verdict) value() string {
	if v.missing() {
		return "not measured"
	}
	return v.measured.String()
}

// judge compares the measured values with the targets.
func judge(all []target, measured times, figures map[string]quartiles) []verdict {
	var verdicts []verdict
	for _, t := range all {
		for _, of := range t.of {
			v := verdict{target: t.title, measure: of, most: t.most, against: t.unit}
			if len(t.to) == 0 {
				q, found := figures[of]
				if !found {
					q = spread(nil)
				}
				v.measured = q
			} else {
				v.against = quickest(measured, t.to)
				v.measured = ratios(measured[of], measured[v.against])
			}
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// quickest returns the id of the measure with the lowest median.
func quickest(measured times, ids []string) string {
	best := ids[0]
	for _, id := range ids[1:] {
		// Comparisons with NaN are false.
		if spread(measured[id]).median < spread(measured[best]).median || len(measured[best]) == 0 {
			best = id
		}
	}
	return best
}
