package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The README's tables have every flag of serve with its default, and every exit code.
func TestReadme(t *testing.T) {
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := kong.New(&cli{}, kong.Vars{"version": "test"})
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
	computed := map[string]bool{"max-sessions": true, "parked": true, "spares": true, "shell-spares": true} // the README says how
	for _, flag := range parser.Model.Children[0].Flags {
		defaults, there := documented[flag.Name]
		if !there && flag.Name != "help" && flag.Name != "version" {
			t.Errorf("README.md does not name --%s", flag.Name)
		}
		if flag.HasDefault && !computed[flag.Name] && !strings.Contains(defaults, "`"+flag.Default+"`") {
			t.Errorf("README.md gives --%s the default %s, not %s", flag.Name, defaults, flag.Default)
		}
		delete(documented, flag.Name)
	}
	for name := range documented {
		t.Errorf("README.md names --%s, which serve does not have", name)
	}
	for code := exitOK; code <= exitDamaged; code++ {
		if !strings.Contains(string(raw), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("README.md does not list exit code %d", code)
		}
	}
}
