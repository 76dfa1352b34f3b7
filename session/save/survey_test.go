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

// However much a profile holds, the document stays small enough for a restore. What does
// not fit is left out, the counts last.
func TestFirstFitting(t *testing.T) {
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
		got := firstFitting(test.best, test.counted, test.last)
		if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(state.Holding{}, "Uncounted")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if why, is := got.Inventory.Uncounted(state.ComponentDatadir); is != (name == "counts are too") {
			t.Errorf("%s: uncounted: %q", name, why)
		}
	}
}

// A profile waits for its turn to be read. If the daemon stops first, it is saved without
// counts.
func TestSurveyWaitsForItsTurn(t *testing.T) {
	s := New(Config{Log: slog.New(slog.DiscardHandler)})
	for range maxSurveys {
		s.surveySlots <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	doc, problem := s.Survey(ctx, Job{}, state.Document{Datadir: state.DatadirClean, FromDisk: []string{state.ComponentCookies}})
	if len(doc.FromDisk) != 0 || len(doc.Inventory) != 1 || doc.Inventory[0].Uncounted == "" || problem != UnreadCopy {
		t.Errorf("%+v, %q", doc, problem)
	}
}

// The report names what was saved but not counted, like damage.
func TestReportNamesUncounted(t *testing.T) {
	doc := state.Document{Inventory: state.Inventory{{Component: state.ComponentIndexedDB, Origin: "https://a.example/", Uncounted: "another form"}}}
	dir := &browser.Dir{Path: t.TempDir()}
	if got := newReport(Job{Dir: dir}, doc, time.Now()).Warnings; len(got) != 1 || !strings.Contains(got[0], "indexed_db https://a.example/ was saved unchanged but not counted: another form") {
		t.Errorf("%q", got)
	}
}

// blockedDatadirs is a Datadirs whose Inspect ends only with its context.
type blockedDatadirs struct{ Datadirs }

func (blockedDatadirs) Inspect(ctx context.Context, _ string, _ state.Document) (browser.Survey, error) {
	<-ctx.Done()
	return browser.Survey{}, ctx.Err()
}

// A profile that cannot be read in time is saved without counts.
func TestSurveyTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Datadirs: blockedDatadirs{}, Log: slog.New(slog.DiscardHandler)})
		doc, problem := s.Survey(t.Context(), Job{Dir: &browser.Dir{Path: "/none"}}, state.Document{Datadir: state.DatadirClean})
		if problem != UnreadCopy || len(doc.Inventory) != 1 || doc.Inventory[0].Uncounted == "" {
			t.Errorf("%+v, %q", doc, problem)
		}
	})
}

// A database that Chrome had not written is not said to be damaged.
func TestReportOfUnwrittenDatabase(t *testing.T) {
	doc := state.Document{Inventory: state.Inventory{{Component: state.ComponentCookies, Damage: state.NotWritten}}}
	got := newReport(Job{Dir: &browser.Dir{Path: t.TempDir()}}, doc, time.Now()).Warnings
	if want := "cookies had not been written yet"; len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("%q, want %q", got, want)
	}
}
