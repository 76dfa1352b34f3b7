package filter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
)

// maxPreferences bounds the settings file, in bytes. Chrome's has a few hundred
// kilobytes; decoded JSON takes up to thirty times its size.
const maxPreferences = 8 << 20

// preferences removes other sites' content settings and engagement from Chrome's
// settings, and all zoom levels, which are lists of addresses.
func (s *run) preferences(context.Context) error {
	const file = "Preferences"
	info, err := s.root.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() > maxPreferences:
		s.reportRemoved(file, "it is not a plain file of at most 8 MiB")
		return s.root.RemoveAll(file)
	}
	raw, err := s.root.ReadFile(file)
	if err != nil {
		return err
	}
	var prefs map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // some are 64-bit times that a float would round
	if d.Decode(&prefs) != nil || prefs == nil {
		s.reportRemoved(file, "it is not JSON")
		return s.root.Remove(file)
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
	return s.root.WriteFile(file, out, 0o600)
}
