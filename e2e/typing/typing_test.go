package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

func TestMain(m *testing.M) {
	code := m.Run()
	daemon.CleanUp()
	os.Exit(code)
}

// No field loses what is typed into it, in a session of any way, of either
// engine, by either client: a short form of what `make typing` does.
func TestNoneIsLost(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-stasis", daemon.Binary(t), "-clients", "../clients", "-count", "60", "-control", "0", "-load", "2"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"| fresh | puppeteer | chrome | 3 | 0 |", "| standby | playwright | shell | 3 | 0 |", "| all | | | 60 | 0 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("not in the table: %s\n%s", want, out.String())
		}
	}
}

// A table counts what is lost by row and in all.
func TestTable(t *testing.T) {
	sums := table{}
	for lost := range 3 {
		sums.add(row{fresh, "puppeteer", "shell"}, 3, lost)
	}
	sums.add(row{warm, "puppeteer", "chrome"}, 3, 0)
	const want = `| way | client | engine | tried | lost |
|---|---|---|---|---|
| warm | puppeteer | chrome | 3 | 0 |
| fresh | puppeteer | shell | 9 | 3 |
| all | | | 12 | 3 |
`
	if got := sums.String(); got != want {
		t.Errorf("%s, want\n%s", got, want)
	}
}
