package api

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
)

const (
	maxUserID   = 256      // bytes
	maxURL      = 32 << 10 // bytes
	maxFileName = 255      // bytes
)

var idPattern = regexp.MustCompile(`^[a-z0-9_-]{1,128}$`)

// firstOf returns the first error of several checks. An empty string means an absent field
// and passes every check.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// oneOf refuses a value that is not in a closed list.
func oneOf(field, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return invalid(field, "must be one of %s", strings.Join(allowed, ", "))
}

// onlySupported refuses a value other than only, the one that is supported so far.
func onlySupported(field, value, only string) error {
	if value == "" || value == only {
		return nil
	}
	return fault.New(fault.Unsupported, "api.check", "%s: only %s is supported", field, only)
}

// isEngine refuses a value that is not the name of an engine.
func isEngine(field, value string) error {
	return oneOf(field, value, browser.EngineChrome, browser.EngineShell)
}

func atMost(field, value string, limit int) error {
	if len(value) <= limit {
		return nil
	}
	return invalid(field, "must be at most %d bytes long", limit)
}

func within(field string, value, low, high int64) error {
	if value >= low && value <= high {
		return nil
	}
	return invalid(field, "must be from %d to %d", low, high)
}

// withinSeconds is within for a duration in seconds. The error has the limits as people
// write them too.
func withinSeconds(field string, value, low, high int64) error {
	if value >= low && value <= high {
		return nil
	}
	return invalid(field, "must be from %d to %d (%s to %s)", low, high, span(low), span(high))
}

// span returns a duration in its largest whole unit: 90s, 24h, 7d.
func span(seconds int64) string {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	switch {
	case seconds > day && seconds%day == 0:
		return fmt.Sprintf("%dd", seconds/day)
	case seconds >= hour && seconds%hour == 0:
		return fmt.Sprintf("%dh", seconds/hour)
	case seconds >= minute && seconds%minute == 0:
		return fmt.Sprintf("%dm", seconds/minute)
	}
	return fmt.Sprintf("%ds", seconds)
}

// isUserID refuses what cannot be a user ID. Any text that can be shown on one line is
// allowed; it is never used as a path.
func isUserID(field, value string) error {
	switch {
	case len(value) > maxUserID:
		return invalid(field, "must be at most %d bytes long", maxUserID)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		return invalid(field, "must be UTF-8 without control characters")
	}
	return nil
}

func isID(field, value string) error {
	if value == "" || idPattern.MatchString(value) {
		return nil
	}
	return invalid(field, "must match %s", idPattern)
}

// isPageURL refuses a URL that a session's page may not be sent to.
func isPageURL(field, value string) error {
	if value == "" || value == "about:blank" {
		return nil
	}
	if len(value) > maxURL {
		return invalid(field, "must be at most %d bytes long", maxURL)
	}
	scheme, _, _ := strings.Cut(value, ":")
	switch strings.ToLower(scheme) {
	case "data":
		return nil
	case "http", "https":
		if u, err := url.Parse(value); err == nil && u.Host != "" {
			return nil
		}
	}
	return invalid(field, "must be an http:, https: or data: URL, or about:blank")
}

// isSiteURL refuses a URL that is not a web page's.
func isSiteURL(field, value string) error {
	if len(value) > maxURL {
		return invalid(field, "must be at most %d bytes long", maxURL)
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return invalid(field, "must be an http: or https: URL")
	}
	if u.User != nil {
		return invalid(field, "must not have a user name or password: Stasis stores the URL unencrypted")
	}
	return nil
}

func areLabels(labels map[string]string) error {
	const most, longestName, longestValue = 32, 64, 256
	if len(labels) > most {
		return invalid("labels", "must be at most %d", most)
	}
	for name, value := range labels {
		if name == "" || len(name) > longestName {
			return invalid("labels", "a name must be 1 to %d bytes long", longestName)
		}
		if len(value) > longestValue {
			return invalid("labels."+name, "must be at most %d bytes long", longestValue)
		}
	}
	return nil
}

// isFileName reports whether a name is a single path element without control characters.
func isFileName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxFileName && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) })
}
