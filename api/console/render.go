package console

import (
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

//go:embed templates
var sources embed.FS

// templates are the parsed pages by name. Each has the layout.
type templates map[string]*template.Template

// page is what the layout shows. Data is for the page itself.
type page struct {
	Title   string
	Section string // of the navigation
	Data    any
	Actions []action // what the page can change

	// The rest is set by write.
	User   string
	Style  string
	Notice *notice
	Reads  []string // the calls that the page made, as curl
}

// action is a call that a form of the page makes.
type action struct {
	Label string
	Call  call
	Curl  string // set by write
}

// navTab is a link of the navigation.
type navTab struct {
	Label, Href string
	Current     bool
}

// namedList is one entry of a description list.
type namedList struct {
	Name  string
	Items []string
}

// parseTemplates parses all pages. It panics if one is wrong, which a test would find.
func parseTemplates(at func(...string) string, now func() time.Time) templates {
	funcs := template.FuncMap{
		"at":    at,
		"ago":   func(t any) string { return relative(timeOf(t), now()) },
		"when":  func(t any) string { return exact(timeOf(t)) },
		"plain": func(name string) string { return strings.ReplaceAll(name, "_", " ") },
		"size":  size, "milliseconds": milliseconds, "isWeb": isWeb, "show": show, "picture": picture,
		"connected": connected, "lost": lost, "kind": kind,
		"tab": func(current, section, label, href string) navTab {
			return navTab{Label: label, Href: href, Current: current == section}
		},
		"list": func(name string, items []string) namedList { return namedList{name, items} },
	}
	layout := template.Must(template.New("").Funcs(funcs).ParseFS(sources, "templates/layout.html", "templates/parts.html"))
	names, err := fs.Glob(sources, "templates/*.html")
	if err != nil {
		panic(err)
	}
	all := templates{}
	for _, name := range names {
		if base := strings.TrimSuffix(path.Base(name), ".html"); base != "layout" && base != "parts" {
			all[base] = template.Must(template.Must(layout.Clone()).ParseFS(sources, name))
		}
	}
	return all
}

// timeOf returns a time of an answer, which may be a pointer; zero: there is none.
func timeOf(field any) time.Time {
	switch t := field.(type) {
	case time.Time:
		return t
	case *time.Time:
		if t != nil {
			return *t
		}
	}
	return time.Time{}
}

// relative returns a time for people: "5 min ago", "in 3 h".
func relative(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	form := "%s ago"
	in := func(unit time.Duration) int { return int(d / unit) }
	if d < 0 {
		form, d = "in %s", -d
		// A limit of 6 hours is "in 6 h", also a moment later.
		in = func(unit time.Duration) int { return int((d + unit/2) / unit) }
	}
	switch {
	case d < 2*time.Second:
		return "now"
	case d < 2*time.Minute:
		return fmt.Sprintf(form, fmt.Sprintf("%d s", in(time.Second)))
	case d < 2*time.Hour:
		return fmt.Sprintf(form, fmt.Sprintf("%d min", in(time.Minute)))
	case d < 48*time.Hour:
		return fmt.Sprintf(form, fmt.Sprintf("%d h", in(time.Hour)))
	default:
		return fmt.Sprintf(form, fmt.Sprintf("%d days", in(24*time.Hour)))
	}
}

// exact returns a time with its zone.
func exact(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// size returns a number of bytes for people.
func size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) } //nolint:gosec // it is not negative

// count returns a number with its noun.
func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "1 " + noun
	default:
		return fmt.Sprintf("%d %ss", n, noun)
	}
}

func milliseconds(ms int64) string {
	if ms < 10_000 {
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}

// isWeb reports whether an address may be a link: only http and https are.
func isWeb(address string) bool {
	scheme, _, _ := strings.Cut(address, "://")
	return strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")
}

// show returns a decoded JSON value as text: strings as they are, others as JSON.
func show(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	data, err := encode(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// picture returns base64 of a JPEG as an address for an img. Anything else is "".
func picture(jpeg any) template.URL {
	text, _ := jpeg.(string)
	if _, err := base64.StdEncoding.DecodeString(text); err != nil || text == "" {
		return ""
	}
	return template.URL("data:image/jpeg;base64," + text) //nolint:gosec // it is base64
}

// raw is JSON that a page shows as text.
type raw json.RawMessage

// UnmarshalJSON keeps the JSON.
func (r *raw) UnmarshalJSON(data []byte) error {
	*r = append((*r)[:0], data...)
	return nil
}

// String returns a JSON string decoded, other JSON unchanged.
func (r raw) String() string {
	var text string
	if json.Unmarshal(r, &text) == nil {
		return text
	}
	return string(r)
}
