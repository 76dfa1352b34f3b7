package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/state"
)

// The session file must have the entries of the tabs' lists that Chrome keeps, and no others.
func TestTabsWritten(t *testing.T) {
	dir := t.TempDir()
	sessions := filepath.Join(profile.Path(dir), "Sessions")
	tab := state.Tab{Current: 9}
	for i := range 20 {
		tab.History = append(tab.History, state.HistoryEntry{URL: fmt.Sprintf("https://a.example/%02d", i)})
	}
	write := func(from, to int) {
		t.Helper()
		text := ""
		for _, e := range tab.History[from:to] {
			text += e.URL + "\n"
		}
		if err := os.MkdirAll(sessions, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sessions, "Session_13000000000000001"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		from, to int
		want     bool
	}{{0, 20, true}, {4, 15, true}, {5, 15, false}, {4, 14, false}} {
		if write(test.from, test.to); tabsWritten(t.Context(), dir, []state.Tab{tab}) != test.want {
			t.Errorf("with the entries from %d to %d it is %v", test.from, test.to, !test.want)
		}
	}
	if !tabsWritten(t.Context(), dir, []state.Tab{{History: []state.HistoryEntry{{URL: "about:blank"}}}, {}}) {
		t.Error("it waits for a blank tab")
	}
}
