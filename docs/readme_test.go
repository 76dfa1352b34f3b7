package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The README's quick start is exactly the file that a test runs.
func TestReadmeHasTheQuickStart(t *testing.T) {
	script, err := os.ReadFile("../examples/quickstart.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(readme(t), "```js\n"+string(script)+"```\n") {
		t.Error("README.md does not contain examples/quickstart.mjs unchanged")
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
