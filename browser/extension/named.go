package extension

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// matchPattern is the form of a content script's match pattern
// (https://developer.chrome.com/docs/extensions/develop/concepts/match-patterns).
var matchPattern = regexp.MustCompile(`^(<all_urls>|file://[^/]*/.*|(\*|[a-z][a-z0-9+.-]*)://(\*|(\*\.)?[^*/:]+)(:(\*|\d+))?/.*)$`)

// checkNamed refuses a manifest that Chrome would not load for what it names:
// a worker, scripts and translations that are not among the files, and content
// scripts that match nothing. So it is told at the upload and not at a create.
func checkNamed(raw []byte, there func(name string) bool) error {
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
		return invalid("manifest.json: background, content_scripts or default_locale is not of its type")
	}
	missing := func(field, name string) error {
		// What is written with escapes or a query Chrome may find otherwise.
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
				return invalid("manifest.json: %s: %q is no match pattern, such as https://*.example.com/* or <all_urls>", field, shorten(pattern))
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
