package sift

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strings"
)

// preferences takes the content settings and engagement of other sites out of
// Chrome's settings, zoom levels, and lists of addresses.
func (s *sieve) preferences() error {
	raw, err := fs.ReadFile(s.root.FS(), "Preferences")
	if err != nil {
		return nil // none are there
	}
	var prefs map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // some are 64-bit times that a float would round
	if d.Decode(&prefs) != nil || prefs == nil {
		s.lose("Preferences")
		return s.root.Remove("Preferences")
	}
	if profile, ok := prefs["profile"].(map[string]any); ok {
		if content, ok := profile["content_settings"].(map[string]any); ok {
			exceptions, _ := content["exceptions"].(map[string]any)
			for _, patterns := range exceptions {
				patterns, _ := patterns.(map[string]any)
				for pattern := range patterns {
					first, second, _ := strings.Cut(pattern, ",")
					if !s.selection.HasPattern(first) || !s.selection.HasPattern(second) {
						delete(patterns, pattern)
					}
				}
			}
		}
	}
	if partition, ok := prefs["partition"].(map[string]any); ok {
		delete(partition, "per_host_zoom_levels")
	}
	out, err := json.Marshal(prefs)
	if err != nil {
		return err
	}
	return s.root.WriteFile("Preferences", out, 0o600)
}
