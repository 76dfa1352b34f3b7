package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every script that the quick start runs is in its folder. TestQuickStart in package
// e2e runs the commands.
func TestReadmeScripts(t *testing.T) {
	_, start, found := strings.Cut(readme(t), "\n## Quick start\n")
	if !found {
		t.Fatal("README.md has no quick start")
	}
	start, _, _ = strings.Cut(start, "\n## ")
	scripts := regexp.MustCompile(`[a-z-]+\.mjs`).FindAllString(start, -1)
	if len(scripts) < 3 {
		t.Fatalf("only %d scripts found in the quick start", len(scripts))
	}
	for _, name := range scripts {
		if _, err := os.Stat(filepath.Join("../examples/quickstart", name)); err != nil {
			t.Errorf("README.md names %s, which is not in examples/quickstart", name)
		}
	}
}

// Every target of make that the README names exists.
func TestReadmeTargets(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^make ([a-z]+)`).FindAllStringSubmatch(readme(t), -1)
	if len(named) < 3 {
		t.Fatalf("only %d targets found in the README", len(named))
	}
	for _, target := range named {
		if !strings.Contains(string(makefile), "\n.PHONY: "+target[1]+"\n") {
			t.Errorf("README.md names make %s, which does not exist", target[1])
		}
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
