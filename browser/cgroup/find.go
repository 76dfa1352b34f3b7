package cgroup

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// The controllers that limits need. Without cpu, processors are not limited.
const (
	memory = "memory"
	pids   = "pids"
	cpu    = "cpu"
)

// mount is where control groups are mounted (proc_pid_mountinfo(5)).
type mount struct {
	root, at    string   // the group that is visible there, and the folder
	unified     bool     // version 2
	controllers []string // of version 1
}

// find returns the version that has the controllers. own is the text of the daemon's
// /proc/PID/cgroup, mounts that of its /proc/PID/mountinfo.
func find(own, mounts string) (version, error) {
	all := parseMounts(mounts)
	folders := map[string]string{} // of the daemon's group, by controller; "" is version 2
	tops := map[string]string{}
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			for _, m := range all {
				if m.unified == (controller == "") && (m.unified || slices.Contains(m.controllers, controller)) {
					folders[controller], tops[controller] = m.folder(parts[2]), m.at
				}
			}
		}
	}
	if folders[memory] != "" && folders[pids] != "" {
		return newV1(folders, tops), nil
	}
	if folders[""] != "" {
		return newV2(folders[""], tops[""])
	}
	return nil, fault.New(fault.Unsupported, "cgroup.find", "no control groups with the controllers memory and pids are mounted")
}

// folder returns the folder of a group. A mount in a container may show only a part of the
// groups, and the group's path may begin above that part.
func (m mount) folder(group string) string {
	if rest, err := filepath.Rel(m.root, group); err == nil && filepath.IsLocal(rest) {
		return filepath.Join(m.at, rest)
	}
	return filepath.Join(m.at, group)
}

func parseMounts(text string) (all []mount) {
	for line := range strings.Lines(text) {
		before, after, found := strings.Cut(strings.TrimSpace(line), " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if !found || len(where) < 5 || len(what) < 3 {
			continue
		}
		m := mount{root: where[3], at: where[4], controllers: strings.Split(what[2], ",")}
		switch what[0] {
		case "cgroup":
			all = append(all, m)
		case "cgroup2":
			m.unified = true
			all = append(all, m)
		}
	}
	return all
}
