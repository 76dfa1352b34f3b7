package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unclear are words that readers had to decode, with the words to use in their place.
var unclear = map[string]string{
	"told": "reported, notified", "tell": "report, notify", "teller": "reporter", "tale": "story",
	"laid": "written, applied", "brought": "loaded", "heard": "received", "hear": "receive",
	"happening": "event", "befell": "happened to", "whoever": "a caller, a client", "thereby": "so",
	"sift": "filter", "sieve": "filter", "salvage": "baseline", "upright": "started", "attendance": "target initialiser",
	"gift": "target initialiser", "entrance": "admission", "door": "admission", "lull": "idle", "deaf": "stopped",
	"flaw": "damage", "soundness": "verify result",
}

// unclearPhrases are the same for phrases.
var unclearPhrases = regexp.MustCompile(`\b(of (its|their) own($|[^ \w])|as it is($|[^ \w])|(comes? (up|back)|goes on|ahead of need|in the place of|thin(s|ned)? out)\b)`)

// identifierWord is a word of prose or a part of a name: "tell" in tellClients.
var identifierWord = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// unclearHere are the places that need such a word: a stored or public name, or the text of
// a test's own page.
var unclearHere = map[string]string{
	"docs/words_test.go":                      "the list itself",
	"openapi.yaml":                            "Soundness is a public schema name",
	"clients/typescript/src/api.ts":           "generated from openapi.yaml",
	"clients/typescript/src/stasis.ts":        "Soundness is a public schema name",
	"e2e/golden_read_test.go":                 `"told" is a session in the golden data`,
	"e2e/golden_write_test.go":                `"told" is a session in the golden data`,
	"session/rescue/sealed.go":                `"laid" is a stored name`,
	"browser/profile/profiletest/newer.go":    `"told" is a mark in the tables of testdata`,
	"browser/profile/reconcile_table_test.go": `"told" is a mark in the tables of testdata`,
}

// Names, comments, messages and pages use words that a stranger knows.
func TestWords(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, "../")
		if d.IsDir() {
			if d.Name() == "node_modules" || d.Name() == "bin" || d.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Ext(name) {
		case ".go", ".md", ".yaml", ".mjs", ".sh", ".py", ".ts":
		default:
			if d.Name() != "Makefile" && filepath.Dir(name) != "build" {
				return nil
			}
		}
		if unclearHere[name] != "" {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(raw), "\n") {
			for _, word := range identifierWord.FindAllString(line, -1) {
				if use := unclear[strings.ToLower(word)]; use != "" {
					t.Errorf("%s:%d: %q; use %s", name, i+1, word, use)
				}
			}
			if phrase := unclearPhrases.FindString(line); phrase != "" {
				t.Errorf("%s:%d: %q; say who does what", name, i+1, phrase)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
