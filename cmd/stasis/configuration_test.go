//go:build linux

package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tables of docs/configuration.md have every flag of serve, with its default,
// and every exit code. Every flag's environment variable follows the rule of that page.
func TestConfigurationPage(t *testing.T) {
	const page = "docs/configuration.md"
	raw, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{} // flag → its line
	for line := range strings.Lines(string(raw)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			for _, flag := range regexp.MustCompile("`--([a-z0-9-]+)`").FindAllStringSubmatch(cells[1], -1) {
				documented[flag[1]] = cells[2]
			}
		}
	}
	computed := map[string]bool{"max-sessions": true, "parked": true, "spares": true, "shell-spares": true} // the page says how
	for _, flag := range newParser(&cli{}).Model.Children[0].Flags {
		defaults, there := documented[flag.Name]
		if !there && flag.Name != "help" && flag.Name != "version" {
			t.Errorf("%s does not name --%s", page, flag.Name)
		}
		if flag.HasDefault && !computed[flag.Name] && !strings.Contains(defaults, "`"+flag.Default+"`") {
			t.Errorf("%s gives --%s the default %s, not %s", page, flag.Name, defaults, flag.Default)
		}
		if name := "STASIS_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_")); there && !slices.Equal(flag.Envs, []string{name}) {
			t.Errorf("--%s is %s in the environment, not %s as %s says", flag.Name, flag.Envs, name, page)
		}
		delete(documented, flag.Name)
	}
	for name := range documented {
		t.Errorf("%s names --%s, which serve does not have", page, name)
	}
	for code := exitOK; code <= exitDamaged; code++ {
		if !strings.Contains(string(raw), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("%s does not name exit code %d", page, code)
		}
	}
}
