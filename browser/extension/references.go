package extension

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// matchPattern matches a content script's match pattern
// (https://developer.chrome.com/docs/extensions/develop/concepts/match-patterns).
var matchPattern = regexp.MustCompile(`^(<all_urls>|file://[^/]*/.*|(\*|[a-z][a-z0-9+.-]*)://(\*|(\*\.)?[^*/:]+)(:(\*|\d+))?/.*)$`)

// checkReferences rejects a manifest that Chrome would not load because of what it names:
// a worker, scripts or translations that are not among the files, or content scripts
// without a pattern. The upload then fails, not a later create.
func checkReferences(raw []byte, there func(name string) bool) error {
	var m struct {
		Background struct {
			Worker string `json:"service_worker"`
		} `json:"background"`
		Scripts []struct {
			Matches []string `json:"matches"`
			Exclude []string `json:"exclude_matches"`
			JS      []string `json:"js"`
			CSS     []string `json:"css"`
		} `json:"content_scripts"`
		Locale *string `json:"default_locale"`
	}
	if err := json.Unmarshal(trim(raw), &m); err != nil {
		return invalid("manifest.json: background, content_scripts or default_locale has a wrong type")
	}
	missing := func(field, name string) error {
		// Chrome may resolve a name with escapes or a query to another file.
		clean := strings.TrimPrefix(path.Clean("/"+name), "/")
		if name == "" || there(clean) || strings.ContainsAny(name, "%?#\\") {
			return nil
		}
		return invalid("manifest.json: %s: there is no file %q", field, shorten(name))
	}
	if err := missing("background.service_worker", m.Background.Worker); err != nil {
		return err
	}
	for i, s := range m.Scripts {
		field := fmt.Sprintf("content_scripts[%d]", i)
		if len(s.Matches) == 0 {
			return invalid("manifest.json: %s.matches must have a pattern", field)
		}
		for _, pattern := range append(s.Matches, s.Exclude...) {
			if !matchPattern.MatchString(pattern) {
				return invalid("manifest.json: %s: %q is not a match pattern; valid ones are https://*.example.com/* or <all_urls>", field, shorten(pattern))
			}
		}
		for _, name := range append(s.JS, s.CSS...) {
			if err := missing(field, name); err != nil {
				return err
			}
		}
	}
	if m.Locale != nil && !there("_locales/"+*m.Locale+"/messages.json") {
		return invalid("manifest.json: default_locale: there is no file _locales/%s/messages.json", shorten(*m.Locale))
	}
	return nil
}
