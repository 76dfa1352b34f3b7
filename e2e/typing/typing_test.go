package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	daemon.CleanUp()
	os.Exit(code)
}

// No field loses what is typed into it, in a session of any restore path and engine,
// with either client. The short form tries each path once, the engines and clients in
// turn, one session after the other. The long form tries each of the three with each,
// two sessions at once, beside two busy processes. `make typing` does so more often.
func TestNoneIsLost(t *testing.T) {
	flags, of, all := []string{"-few", "-count", "15", "-load", "0", "-lanes", "1"}, "chrome", "| all | | | 15 | 0 |"
	if storetest.Long() {
		flags, of, all = []string{"-count", "60", "-load", "2"}, "shell", "| all | | | 60 | 0 |"
	}
	flags = append(flags, "-stasis", daemon.Binary(t), "-clients", "../clients", "-control", "0")
	var out strings.Builder
	if err := run(t.Context(), flags, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"| fresh | puppeteer | chrome | 3 | 0 |", "| standby | playwright | " + of + " | 3 | 0 |", all} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("not in the table: %s\n%s", want, out.String())
		}
	}
}

// Few rows have each path once, and each client with each engine.
func TestFewRows(t *testing.T) {
	paths := map[string]int{}
	pairs := map[row]bool{}
	for _, r := range rows(true) {
		paths[r.path]++
		pairs[row{client: r.client, engine: r.engine}] = true
	}
	if len(paths) != 5 || len(rows(true)) != 5 || len(pairs) != 4 || len(rows(false)) != 20 {
		t.Errorf("%d of %d rows, with the paths %v and the pairs %v", len(rows(true)), len(rows(false)), paths, pairs)
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
