package apply_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/state"
)

// A value that a site stored stays a string in the script that applies it, in every
// context.
func TestScriptIsInjectionSafe(t *testing.T) {
	hostile := []string{`</script><script>alert(1)</script>`, `"; alert(1); "`, "`${alert(1)}`", `\`, "\u2028alert(1)\u2029", "<!--", "a\x00b", `'`, "\n", `]]>`}
	tab := state.Tab{URL: "https://www.a.example/", Name: strings.Join(hostile, "")}
	var area state.Area
	for _, h := range hostile {
		area.Items = append(area.Items, state.Item{Key: h, Value: h})
	}
	area.StorageKey = "https://a.example/"
	tab.Session = []state.Area{area}
	script := apply.TabScript(tab)
	for _, raw := range []string{"<", "\u2028", "\u2029", "\x00", "]]>"} {
		if strings.Contains(script, raw) {
			t.Errorf("the script contains %q unescaped", raw)
		}
	}
	// The two literals are JSON, which is JavaScript, and contain the saved values.
	from := strings.Index(script, "areas = ") + len("areas = ")
	d := json.NewDecoder(strings.NewReader(script[from:]))
	var areas map[string][]state.Item
	if err := d.Decode(&areas); err != nil {
		t.Fatal(err)
	}
	for i, h := range hostile {
		if got := areas["https://a.example/"][i]; got.Key != h || got.Value != h {
			t.Errorf("%q is %+v", h, got)
		}
	}
	rest := script[from+int(d.InputOffset()):]
	if !strings.HasPrefix(rest, ", name = ") {
		t.Fatalf("after the areas: %.40q", rest)
	}
	rest = strings.TrimPrefix(rest, ", name = ")
	d = json.NewDecoder(strings.NewReader(rest))
	var name string
	if err := d.Decode(&name); err != nil || name != tab.Name {
		t.Errorf("name %q, %v", name, err)
	}
	if site := rest[d.InputOffset():]; !strings.HasPrefix(site, `, site = "https://a.example";`) {
		t.Errorf("after the name: %.40q", site)
	}
}

func TestEmptyScript(t *testing.T) {
	area := state.Area{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}}}
	inner, nameless := area, area
	inner.StorageKey = "https://b.example/^0https://a.example"
	nameless.StorageKey = "https://b.example/^11^22"
	for name, test := range map[string]struct {
		tab   state.Tab
		empty bool
	}{
		"nothing":         {state.Tab{}, true},
		"partitioned":     {state.Tab{Session: []state.Area{inner}}, false},
		"without a name":  {state.Tab{Session: []state.Area{nameless}}, true},
		"empty area":      {state.Tab{Session: []state.Area{{StorageKey: "https://a.example/"}}}, true},
		"name":            {state.Tab{Name: "n"}, false},
		"session storage": {state.Tab{Session: []state.Area{area}}, false},
	} {
		if got := apply.TabScript(test.tab); (got == "") != test.empty {
			t.Errorf("%s: %q", name, got)
		}
	}
}
