package docs_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every type of event in the journal is in the list of openapi.yaml and in the table of
// docs/sessions.md.
func TestEventTypes(t *testing.T) {
	source := read(t, "../session/events/event.go")
	_, list, _ := strings.Cut(read(t, "../openapi.yaml"), "\n    Event:\n")
	enum := regexp.MustCompile(`enum: \[(started, [a-z_, ]+)\]`).FindStringSubmatch(list)
	if enum == nil {
		t.Fatal("openapi.yaml lists no types of events")
	}
	wire := strings.Split(enum[1], ", ")
	_, table, _ := strings.Cut(read(t, "sessions.md"), "| type | data |")
	table, _, _ = strings.Cut(table, "\n\n")
	constants := regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([a-z_]+)"`).FindAllStringSubmatch(source, -1)
	for _, c := range constants {
		if !slices.Contains(wire, c[1]) {
			t.Errorf("openapi.yaml lacks the event %s", c[1])
		}
		if !strings.Contains(table, "`"+c[1]+"`") {
			t.Errorf("docs/sessions.md lacks the event %s", c[1])
		}
	}
	if len(constants) != len(wire) {
		t.Errorf("the journal has %d types, openapi.yaml %d", len(constants), len(wire))
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
