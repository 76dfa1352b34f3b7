package main

import (
	"maps"
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
// with either client. The short form tries each path with each engine once, the clients
// in turn, one session after the other. The long form tries each of the three with each,
// two sessions at once, beside two busy processes. `make typing` does so more often.
func TestNoneIsLost(t *testing.T) {
	flags, all := []string{"-half", "-count", "30", "-load", "0", "-lanes", "1"}, "| all | | | 30 | 0 |"
	if storetest.Long() {
		flags, all = []string{"-count", "60", "-load", "2"}, "| all | | | 60 | 0 |"
	}
	flags = append(flags, "-stasis", daemon.Binary(t), "-clients", "../clients", "-control", "0")
	var out strings.Builder
	if err := run(t.Context(), flags, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"| fresh | puppeteer | chrome | 3 | 0 |", "| standby | playwright | shell | 3 | 0 |", all} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("not in the table: %s\n%s", want, out.String())
		}
	}
}

// Half of the rows have each pair of a path, an engine and a client.
func TestHalfHasAllPairs(t *testing.T) {
	pairs := func(half bool) map[row]bool {
		seen := map[row]bool{}
		for _, r := range rows(half) {
			seen[row{path: r.path, engine: r.engine}], seen[row{path: r.path, client: r.client}], seen[row{client: r.client, engine: r.engine}] = true, true, true
		}
		return seen
	}
	if len(rows(true))*2 != len(rows(false)) || !maps.Equal(pairs(true), pairs(false)) {
		t.Errorf("%d of %d rows, which have %d of %d pairs", len(rows(true)), len(rows(false)), len(pairs(true)), len(pairs(false)))
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
