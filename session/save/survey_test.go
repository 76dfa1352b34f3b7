package save

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// However much is on the disk, the document stays one that a restore takes:
// what does not fit is left out of it, the counts last.
func TestSmallest(t *testing.T) {
	large := strings.Repeat("x", snapshot.MaxKept)
	doc := func(value, damage string) state.Document {
		return state.Document{Local: []state.Area{{Items: []state.Item{{Value: value}}}}, Inventory: state.Inventory{{Damage: damage}}}
	}
	for name, test := range map[string]struct {
		best, counted, last, want state.Document
	}{
		"all fits":       {doc("best", ""), doc("counted", ""), doc("last", ""), doc("best", "")},
		"storage is too": {doc(large, ""), doc("counted", ""), doc("last", ""), doc("counted", "")},
		"counts are too": {doc(large, ""), doc("counted", large), state.Document{}, state.Document{Inventory: uncounted("")}},
	} {
		got := smallest(test.best, test.counted, test.last)
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(state.Holding{}, "Uncounted")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if why, is := got.Inventory.Uncounted(state.ComponentDatadir); is != (name == "counts are too") {
			t.Errorf("%s: uncounted: %q", name, why)
		}
	}
}

// A profile waits for its turn to be counted; where the daemon stops first, it
// is saved uncounted.
func TestSurveysAreFew(t *testing.T) {
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	for range maxSurveys {
		s.surveys <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	doc, problem := s.Survey(ctx, Job{}, state.Document{Datadir: state.DatadirClean, FromDisk: []string{state.ComponentCookies}})
	if len(doc.FromDisk) != 0 || len(doc.Inventory) != 1 || doc.Inventory[0].Uncounted == "" || problem != UnreadCopy {
		t.Errorf("%+v, %q", doc, problem)
	}
}

// What was saved and not counted is told, as damage is.
func TestUncountedIsTold(t *testing.T) {
	doc := state.Document{Inventory: state.Inventory{{Component: state.ComponentIndexedDB, Origin: "https://a.example/", Uncounted: "another form"}}}
	dir := &browser.Dir{Path: t.TempDir()}
	if got := captured(Job{Dir: dir}, doc, time.Now()).Warnings; len(got) != 1 || !strings.Contains(got[0], "indexed_db https://a.example/ was saved as it is and not counted: another form") {
		t.Errorf("%q", got)
	}
}

// stuck is user data directories of which the reading never ends by itself.
type stuck struct{ Datadirs }

func (stuck) Inspect(ctx context.Context, _ string, _ state.Document) (browser.Survey, error) {
	<-ctx.Done()
	return browser.Survey{}, ctx.Err()
}

// A profile that cannot be read in time is saved uncounted.
func TestSurveysEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Datadirs: stuck{}, Log: slog.New(slog.DiscardHandler)})
		doc, problem := s.Survey(t.Context(), Job{Dir: &browser.Dir{Path: "/none"}}, state.Document{Datadir: state.DatadirClean})
		if problem != UnreadCopy || len(doc.Inventory) != 1 || doc.Inventory[0].Uncounted == "" {
			t.Errorf("%+v, %q", doc, problem)
		}
	})
}
