package inspect

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/stasisd/stasis/state"
)

// settings counts what is in JSON files.
func (s *survey) settings() {
	s.json("Preferences", state.ComponentPreferences, func(prefs map[string]any) {
		s.add(state.Holding{Component: state.ComponentPreferences, Items: 1})
		s.counts(state.ComponentContentSettings, contentSettings(prefs), "", "")
		n := 0
		for _, hosts := range object(prefs, "partition", "per_host_zoom_levels") {
			if hosts, ok := hosts.(map[string]any); ok {
				n += len(hosts)
			}
		}
		if n > 0 {
			s.add(state.Holding{Component: state.ComponentZoom, Items: n})
		}
	})
	s.json("Bookmarks", state.ComponentBookmarks, func(b map[string]any) {
		if n := bookmarks(object(b, "roots"), 0); n > 0 {
			s.add(state.Holding{Component: state.ComponentBookmarks, Items: n})
		}
	})
	s.json("TransportSecurity", state.ComponentHSTS, func(t map[string]any) {
		if sts, _ := t["sts"].([]any); len(sts) > 0 {
			s.add(state.Holding{Component: state.ComponentHSTS, Items: len(sts)})
		}
	})
}

// maxJSON bounds a JSON file, in bytes: decoded, it takes up to thirty times as much
// memory. Settings have a few hundred kilobytes, ten thousand bookmarks 5 MB.
const maxJSON = 8 << 20

// json reads a JSON object. A file that is not one is reported as damaged.
func (s *survey) json(file, component string, do func(map[string]any)) {
	if !s.exists(file) {
		return
	}
	if info, err := fs.Stat(s.fsys, file); err == nil && info.Size() > maxJSON {
		s.add(state.Holding{Component: component, Uncounted: fmt.Sprintf("it has more than %d MiB", maxJSON>>20)})
		return
	}
	var o map[string]any
	raw, err := s.read(file)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil || o == nil {
		s.add(state.Holding{Component: component, Damage: "the file is not JSON"})
		return
	}
	do(o)
}

// object walks down to a nested object; the result is empty if it is not an object.
func object(o map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		o, _ = o[key].(map[string]any)
	}
	return o
}

// contentSettings counts the decisions (allow, block) by site. Entries whose setting is
// not a number are Chrome's own records, such as how often a site is used.
func contentSettings(prefs map[string]any) map[string]int {
	n := map[string]int{}
	for _, patterns := range object(prefs, "profile", "content_settings", "exceptions") {
		patterns, _ := patterns.(map[string]any)
		for pattern, entry := range patterns {
			entry, _ := entry.(map[string]any)
			if _, decided := entry["setting"].(float64); decided {
				site, _, _ := strings.Cut(pattern, ",")
				n[site]++
			}
		}
	}
	return n
}

// maxDepth bounds the depth of bookmark folders.
const maxDepth = 100

// bookmarks counts the bookmarks below the given nodes.
func bookmarks(nodes map[string]any, depth int) int {
	n := 0
	for _, node := range nodes {
		node, _ := node.(map[string]any)
		n += bookmark(node, depth)
	}
	return n
}

func bookmark(node map[string]any, depth int) int {
	if node["type"] == "url" {
		return 1
	}
	if depth >= maxDepth {
		return 0
	}
	n := 0
	children, _ := node["children"].([]any)
	for _, child := range children {
		child, _ := child.(map[string]any)
		n += bookmark(child, depth+1)
	}
	return n
}
