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

// No field loses what is typed into it, in a session of any restore path and engine,
// with either client. This is a short form of `make typing`.
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

// A table counts lost fields by row and in total.
func TestTable(t *testing.T) {
	sums := table{}
	for lost := range 3 {
		sums.add(row{fresh, "puppeteer", "shell"}, 3, lost)
	}
	sums.add(row{warm, "puppeteer", "chrome"}, 3, 0)
	const want = `| session | client | engine | tried | lost |
|---|---|---|---|---|
| warm | puppeteer | chrome | 3 | 0 |
| fresh | puppeteer | shell | 9 | 3 |
| all | | | 12 | 3 |
`
	if got := sums.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
