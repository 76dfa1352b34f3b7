// Package docs_test compares the documentation with the repository: the imports between
// packages, the links in the documents, the index of decisions.
package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// A link is [text](target) or [name]: target, outside of code.
	inlineLink    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)>?[^)]*\)`)
	referenceLink = regexp.MustCompile(`(?m)^\[[^\]]+\]:\s*(\S+)`)
	codeBlock     = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```\\s*$")
	codeSpan      = regexp.MustCompile("`[^`\n]*`")
	heading       = regexp.MustCompile(`(?m)^#{1,6}\s+(.+?)\s*#*\s*$`)
	notInAnchor   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

	decisionName = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}-[a-z0-9]+(-[a-z0-9]+)*\.md$`)
)

// Every link in a document of the repository leads to a file, and to an existing heading if
// it names one.
func TestLinks(t *testing.T) {
	files := documents(t)
	if len(files) == 0 {
		t.Fatal("no documents found")
	}
	for _, file := range files {
		text := prose(t, file)
		links := append(inlineLink.FindAllStringSubmatch(text, -1), referenceLink.FindAllStringSubmatch(text, -1)...)
		for _, link := range links {
			checkLink(t, file, link[1])
		}
	}
}

func checkLink(t *testing.T, file, link string) {
	t.Helper()
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return
	}
	target, anchor, _ := strings.Cut(link, "#")
	path := file
	if target != "" {
		path = filepath.Join(filepath.Dir(file), target)
	}
	if rel, err := filepath.Rel("..", path); err != nil || strings.HasPrefix(rel, "..") || filepath.IsAbs(target) {
		t.Errorf("%s: %s leads out of the repository", file, link)
	} else if _, err := os.Stat(path); err != nil {
		t.Errorf("%s: %s leads to no file", file, link)
	} else if anchor != "" && filepath.Ext(path) == ".md" && !hasHeading(t, path, anchor) {
		t.Errorf("%s: %s names a heading that does not exist", file, link)
	}
}

// hasHeading reports whether one of the document's headings has the anchor, made the usual
// way: lower case, words joined by hyphens, other characters dropped.
func hasHeading(t *testing.T, file, anchor string) bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(raw), ""), -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(h[1]), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// Every decision has a date, status, context, decision and consequences, and is in the
// index.
func TestDecisions(t *testing.T) {
	index, err := os.ReadFile("decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("decisions")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if name == "README.md" {
			continue
		}
		if !decisionName.MatchString(name) {
			t.Errorf("%s is not named YYYY-MM-DD-slug.md", name)
		}
		if !strings.Contains(string(index), "("+name+")") {
			t.Errorf("%s is not in the index", name)
		}
		raw, err := os.ReadFile(filepath.Join("decisions", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"Status", "Context", "Decision", "Consequences"} {
			if !regexp.MustCompile(`(?m)^(##\s+|\*{0,2})` + part + `\b`).Match(raw) {
				t.Errorf("%s has no %s", name, part)
			}
		}
	}
}

// documents returns the Markdown files of the repository, including untracked ones.
func documents(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var files []string
	for _, name := range strings.Fields(string(out)) {
		files = append(files, filepath.Join("..", name))
	}
	return files
}

// prose returns a document without its code.
func prose(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return codeSpan.ReplaceAllString(codeBlock.ReplaceAllString(string(raw), ""), "")
}
