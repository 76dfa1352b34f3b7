package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every text that a guard replaces is there once, and what remains is Go. The tests that it
// names exist.
func TestGuards(t *testing.T) {
	at, err := root()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, g := range all() {
		if names[g.name] || g.name == "" || g.keeps == "" || g.fails == "" || g.test == "" || len(g.without) == 0 {
			t.Errorf("%q lacks a field, or its name is taken", g.name)
		}
		names[g.name] = true
		files, err := g.mutated(at)
		if err != nil {
			t.Error(err)
			continue
		}
		for file, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
				t.Errorf("%s: %v", g.name, err)
			}
		}
		pkg := g.pkg
		if pkg == "" {
			pkg = "./e2e"
		}
		if !hasTest(t, filepath.Join(at, pkg), regexp.MustCompile(`^\w+`).FindString(g.test)) {
			t.Errorf("%s: %s has no test %s", g.name, pkg, g.test)
		}
	}
}

// hasTest reports whether a package has a test of this name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declares := regexp.MustCompile(`(?m)^func ` + name + `\(t \*testing\.T\) \{`)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declares.Match(raw) {
			return true
		}
	}
	return false
}
