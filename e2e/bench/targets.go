package main

import (
	"math"
)

// target is one line of what was promised: a measure as a ratio to another in
// the same run, or a figure.
type target struct {
	title string
	of    []string // measures, or figures where to is empty; each is held to it
	to    []string // measures, of which the quickest counts
	most  float64
	unit  string // of a figure
}

// What most of ours is held to.
const (
	bareOnProfile = "cdp/bare"
	bareEmpty     = "cdp/bare-empty"
	shellState    = "login/state-shell"
)

// targets are all of them.
func targets() []target {
	return []target{
		{title: "memory or standby restore to a page that answers CDP, × bare Chrome's cold start on the same profile",
			of: []string{"cdp/memory", "cdp/standby"}, to: []string{bareOnProfile}, most: 0.05},
		{title: "warm filesystem restore to a page that answers CDP, × the same",
			of: []string{"cdp/warm", "cdp/shell-warm"}, to: []string{bareOnProfile}, most: 0.35},
		{title: "warm filesystem restore to the logged-in page, × the fastest rival on full Chrome",
			of: []string{"login/warm"}, to: []string{"login/state-chrome", "login/persistent", "login/userdatadir"}, most: 0.5},
		{title: "warm filesystem restore to the logged-in page, × `storageState` in a warm headless-shell",
			of: []string{"login/warm", "login/shell-warm"}, to: []string{shellState}, most: 1},
		{title: "cold filesystem restore in the shell engine to the logged-in page, × `storageState` in a warm headless-shell",
			of: []string{"login/shell-cold"}, to: []string{shellState}, most: 0.9},
		{title: "memory or standby restore to the logged-in page, × `storageState` in a warm headless-shell",
			of: []string{"login/memory", "login/standby"}, to: []string{shellState}, most: 0.6},
		{title: "fresh create to a page that answers CDP, a spare being there, × bare cold start of an empty profile",
			of: []string{"cdp/fresh", "cdp/shell-fresh"}, to: []string{bareEmpty}, most: 0.1},
		{title: "filesystem delete of the probe profile, × bare cold start on it",
			of: []string{"save/filesystem"}, to: []string{bareOnProfile}, most: 0.6},
		{title: "create → connect → navigate → delete with `none`, × Puppeteer's launch → navigate → close",
			of: []string{"cycle/stasis"}, to: []string{"cycle/puppeteer"}, most: 0.5},
		{title: "a CDP command and its answer through the multiplexer, more than on a direct connection",
			of: []string{"cdp/extra"}, most: 100, unit: "µs"},
		{title: "time of a screenshot through the multiplexer, × on a direct connection",
			of: []string{"cdp/screenshots"}, most: 1.05, unit: "direct"},
		{title: "archive of the probe profile", of: []string{"size/probe"}, most: 100, unit: "KB"},
		{title: "from the start of a daemon after `kill -9` to its first answer, eight sessions having run",
			of: []string{"restart/calls"}, most: 2000, unit: "ms"},
		{title: "the daemon's own memory with 20 sessions", of: []string{"memory/daemon"}, most: 100, unit: "MB"},
	}
}

// verdict is one measure held to a target.
type verdict struct {
	target   string
	measure  string // the measure's id
	measured quartiles
	against  string // what it was held to: its id, or the unit
	most     float64
}

// met tells whether the median keeps the target.
func (v verdict) met() bool { return v.measured.median <= v.most }

// missing tells that there is nothing to judge: that part was not measured.
func (v verdict) missing() bool { return math.IsNaN(v.measured.median) }

// value is the measured spread, in words.
func (v verdict) value() string {
	if v.missing() {
		return "not measured"
	}
	return v.measured.String()
}

// judge holds what was measured to the targets.
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

// quickest is the measure with the lowest median.
func quickest(measured times, ids []string) string {
	best := ids[0]
	for _, id := range ids[1:] {
		// NaN is below nothing.
		if spread(measured[id]).median < spread(measured[best]).median || len(measured[best]) == 0 {
			best = id
		}
	}
	return best
}
