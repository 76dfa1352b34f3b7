package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pathName matches a code span that names a file or folder below the root.
var pathName = regexp.MustCompile("`([a-z][a-z0-9]*(?:/[A-Za-z0-9_*.-]+)+)`")

// Every path in ARCHITECTURE.md exists, and every package is in it.
func TestArchitectureNames(t *testing.T) {
	raw, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range pathName.FindAllStringSubmatch(string(raw), -1) {
		if there, err := filepath.Glob(filepath.Join("..", found[1])); err != nil || len(there) == 0 {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist", found[1])
		}
	}
	for _, p := range listPackages(t) {
		name := pathInModule(p.ImportPath)
		if name == "." || strings.HasPrefix(name, "e2e/") {
			continue
		}
		if !strings.Contains(string(raw), "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md has no line for the package %s", name)
		}
	}
}
