package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldbtest"
	"github.com/stasisd/stasis/session/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// rig is a journal over a catalogue that can be made to fail.
type rig struct {
	*events.Journal
	*testing.T
	profiles.RunStore
	profiles.EventStore
	mu     sync.Mutex
	broken error
	at     time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	db := sqldbtest.Open(t, time.Now)
	if err := db.Sessions.CreateSession(t.Context(), profiles.Session{ID: "s", UserID: "ada", CreatedAt: began}); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, RunStore: db.Runs, EventStore: db.Runs, at: began}
	r.Journal = events.NewJournal(r, plain{}, r.now, slog.New(slog.DiscardHandler))
	return r
}

func (r *rig) now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

func (r *rig) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = r.at.Add(d)
}

func (r *rig) failWith(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
}

func (r *rig) AddEvents(ctx context.Context, id string, events []profiles.Event, keep profiles.EventBounds) ([]profiles.Event, error) {
	r.mu.Lock()
	err := r.broken
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return r.EventStore.AddEvents(ctx, id, events, keep)
}

// plain is a Sealer that seals by adding a prefix.
type plain struct{}

func (plain) Seal(b []byte) ([]byte, error)   { return append([]byte("sealed "), b...), nil }
func (plain) Unseal(b []byte) ([]byte, error) { return bytes.TrimPrefix(b, []byte("sealed ")), nil }

// stored returns the stored events of the session's runs, as "number-sequence type".
func (r *rig) stored() []string {
	r.Helper()
	runs, err := r.Runs(r.Context(), "s")
	if err != nil {
		r.Fatal(err)
	}
	var all []string
	for _, run := range runs {
		page, err := r.Events(r.Context(), run.ID, 0, 0)
		if err != nil {
			r.Fatal(err)
		}
		for _, e := range page.Events {
			all = append(all, fmt.Sprintf("%d-%d %s", run.Number, e.Sequence, e.Type))
		}
	}
	return all
}

func (r *rig) equal(got, want any) {
	r.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("-want +got:\n%s", diff)
	}
}

// Events are stored in the order in which they were recorded. The run ends once, with its
// last event.
func TestRun(t *testing.T) {
	r := newRig(t)
	w := r.Begin("s")
	w.Record(events.Started, nil)
	w.Observe(events.Navigated, events.Fields{"url": "https://a.example/?token=abc", "title": "A"})
	r.Flush(t.Context(), "s")
	r.equal(r.stored(), []string{"1-1 started", "1-2 navigated"})
	runs, _ := r.Runs(t.Context(), "s")
	page, _ := r.Events(t.Context(), runs[0].ID, 0, 0)
	e := page.Events[1]
	if e.Data != nil || page.Events[0].Sealed != nil {
		t.Errorf("the page event is stored in plain as %s; the daemon's event is sealed as %q", e.Data, page.Events[0].Sealed)
	}
	for whole, want := range map[bool]string{
		false: `{"title":"A","url":"https://a.example/?token=***"}`, true: `{"title":"A","url":"https://a.example/?token=abc"}`,
	} {
		got, err := r.Read(e, whole)
		if err != nil {
			t.Fatal(err)
		}
		r.equal(string(got), want)
	}

	w.Record(events.Saved, nil)
	w.End(t.Context(), profiles.RunCompleted, "asked")
	w.End(t.Context(), profiles.RunFailed, "again")
	w.Record("late", nil)
	r.equal(r.stored(), []string{"1-1 started", "1-2 navigated", "1-3 saved", "1-4 ended"})
	runs, _ = r.Runs(t.Context(), "s")
	r.equal([]any{runs[0].Status, runs[0].Cause}, []any{profiles.RunCompleted, "asked"})

	second := r.Begin("s")
	second.Record(events.Restored, nil)
	second.Detach(t.Context())
	open, err := r.OpenRuns(t.Context())
	if err != nil || len(open) != 1 || open[0].Number != 2 {
		t.Errorf("open are %+v: %v", open, err)
	}
	r.equal(r.stored()[4:], []string{"2-1 restored"})
}

// Events that the catalogue refuses are written once and in order when it accepts them
// again.
func TestRefusedEventsAreWrittenLater(t *testing.T) {
	r := newRig(t)
	w := r.Begin("s")
	r.failWith(errors.New("no room"))
	w.Record("a", nil)
	r.Flush(t.Context(), "s")
	w.Record("b", nil)
	r.Flush(t.Context(), "s")
	r.equal(len(r.stored()), 0)
	r.failWith(nil)
	w.Record("c", nil)
	r.Flush(t.Context(), "s")
	r.equal(r.stored(), []string{"1-1 a", "1-2 b", "1-3 c"})
	w.End(t.Context(), profiles.RunCompleted, "")
}

// A page that makes endless events fills neither memory nor disk. Dropped events are
// counted, and the daemon's own events are kept.
func TestFloodIsDroppedAndCounted(t *testing.T) {
	r := newRig(t)
	w := r.Begin("s")
	const storm = 5000
	for range storm {
		w.Observe(events.Console, events.Fields{"text": "x"})
	}
	w.CountDropped(events.Console, 7)
	w.Record(events.Saved, nil)
	r.advance(time.Second)
	w.Observe(events.Navigated, nil)
	w.End(t.Context(), profiles.RunCompleted, "")
	all := r.stored()
	counts := map[string]int{}
	for _, e := range all {
		_, kind, _ := strings.Cut(e, " ")
		counts[kind]++
	}
	runs, _ := r.Runs(t.Context(), "s")
	page, _ := r.Events(t.Context(), runs[0].ID, 0, 0)
	dropped := 0
	for _, e := range page.Events {
		var counted struct {
			Count int
			Types map[string]int
		}
		if e.Type == events.Dropped {
			if err := json.Unmarshal(e.Data, &counted); err != nil {
				t.Fatal(err)
			}
			dropped += counted.Count
			r.equal(counted.Types[events.Console], counted.Count)
		}
	}
	if counts[events.Console]+dropped != storm+7 || counts[events.Console] > 300 || counts[events.Saved] != 1 || counts[events.Navigated] != 1 {
		t.Errorf("of %d events %v are stored, and %d are counted as dropped", storm, counts, dropped)
	}
}

// A feed returns existing and new events of all runs, each once and in order, and ends
// with the session.
func TestFeed(t *testing.T) {
	r := newRig(t)
	first := r.Begin("s")
	first.Record("a", nil)
	first.End(t.Context(), profiles.RunCompleted, "")
	w := r.Begin("s")
	w.Record("b", nil)
	whole, err := r.Follow(t.Context(), "s", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	fresh, err := r.Follow(t.Context(), "s", nil, true)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	later, err := r.Follow(t.Context(), "s", &events.Position{Run: 1, Sequence: 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()

	const count = 500
	var reading sync.WaitGroup
	got := make([][]string, 3)
	for i, feed := range []*events.Feed{whole, fresh, later} {
		reading.Go(func() {
			for {
				e, err := feed.Next(context.Background())
				if err != nil {
					if err != io.EOF {
						t.Error(err)
					}
					return
				}
				got[i] = append(got[i], fmt.Sprintf("%d-%d %s %v", e.At.Run, e.At.Sequence, e.Type, e.Old))
			}
		})
	}
	for i := range count {
		w.Record(fmt.Sprint(i), nil)
	}
	w.End(t.Context(), profiles.RunCancelled, "")
	r.SessionEnded("s")
	reading.Wait()
	want := []string{"1-1 a", "1-2 ended", "2-1 b"}
	for i := range count {
		want = append(want, fmt.Sprintf("2-%d %d", i+2, i))
	}
	want = append(want, fmt.Sprintf("2-%d ended", count+2))
	with := func(from, old int) []string {
		var all []string
		for i, line := range want[from:] {
			all = append(all, fmt.Sprint(line, " ", i < old))
		}
		return all
	}
	r.equal(got[0], with(0, 3))
	r.equal(got[1], with(3, 0))
	r.equal(got[2], with(1, 0)) // a feed that continues has no old events
}

// A feed refuses a position that does not exist, and waits no longer than its context.
func TestFeedPosition(t *testing.T) {
	r := newRig(t)
	w := r.Begin("s")
	defer w.End(context.Background(), profiles.RunCompleted, "")
	w.Record("a", nil)
	for _, at := range []events.Position{{Run: 1, Sequence: 2}, {Run: 2, Sequence: 1}, {Run: 7}} {
		if _, err := r.Follow(t.Context(), "s", &at, false); !fault.Is(err, fault.InvalidField) || !strings.Contains(fault.MessageOf(err), "Last-Event-ID") {
			t.Errorf("%+v: %v", at, err)
		}
	}
	feed, err := r.Follow(t.Context(), "s", &events.Position{Run: 1, Sequence: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := feed.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
