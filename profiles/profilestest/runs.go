package profilestest

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// run begins a run of a session.
func (f *fixture) run(id, session string) profiles.Run {
	f.Helper()
	f.n++
	r, err := f.c.Runs.BeginRun(f.ctx, profiles.Run{ID: id, SessionID: session, StartedAt: start.Add(time.Duration(f.n) * time.Second)})
	f.must(err)
	return r
}

// A run ends once, with its last events. A later EndRun changes nothing.
func testRuns(f *fixture) {
	f.session("s", "ada")
	began := f.run("r", "s")
	f.same(began, profiles.Run{ID: "r", SessionID: "s", Number: 1, Status: profiles.RunRunning, StartedAt: start.Add(2 * time.Second)})
	got, err := f.c.Runs.Run(f.ctx, "r")
	f.must(err)
	f.same(got, began)

	end := profiles.RunEnd{RunID: "r", Status: profiles.RunFailed, Cause: "Chrome crashed", EndedAt: start.Add(time.Minute),
		Last: []profiles.Event{{Type: "done", At: start}}}
	want := began
	want.Status, want.Cause, want.EndedAt = end.Status, end.Cause, end.EndedAt
	got, err = f.c.Runs.EndRun(f.ctx, end, profiles.EventBounds{})
	f.must(err)
	f.same(got, want)
	got, err = f.c.Runs.EndRun(f.ctx, profiles.RunEnd{RunID: "r", Status: profiles.RunCompleted, Cause: "again", EndedAt: start.Add(time.Hour),
		Last: []profiles.Event{{Type: "late", At: start}}}, profiles.EventBounds{})
	f.must(err)
	f.same(got, want)
	_, err = f.c.Events.AddEvents(f.ctx, "r", []profiles.Event{{Type: "late", At: start}}, profiles.EventBounds{})
	f.code(err, fault.SessionNotRunning)
	page := f.events("r", 0, 0)
	if len(page.Events) != 1 || page.Events[0].Type != "done" {
		f.Errorf("the run's last events are %+v", page.Events)
	}

	f.run("back", "s") // and then the clock is set back
	back, err := f.c.Runs.EndRun(f.ctx, profiles.RunEnd{RunID: "back", Status: profiles.RunCompleted, EndedAt: start.Add(-time.Hour)}, profiles.EventBounds{})
	f.must(err)
	f.same(back.EndedAt, back.StartedAt)

	_, err = f.c.Runs.BeginRun(f.ctx, profiles.Run{ID: "x", SessionID: "none"})
	f.code(err, fault.SessionNotFound)
	_, err = f.c.Runs.EndRun(f.ctx, profiles.RunEnd{RunID: "none"}, profiles.EventBounds{})
	f.code(err, fault.RunNotFound)
	_, err = f.c.Runs.Run(f.ctx, "none")
	f.code(err, fault.RunNotFound)
	_, err = f.c.Events.AddEvents(f.ctx, "none", nil, profiles.EventBounds{})
	f.code(err, fault.RunNotFound)
	_, err = f.c.Events.Events(f.ctx, "none", 0, 0)
	f.code(err, fault.RunNotFound)
}

// Runs are numbered by session, and OpenRuns finds those that have not ended.
func testOpenRuns(f *fixture) {
	f.session("s", "ada")
	f.session("t", "bob")
	names := ids("r", 4)
	for _, id := range names {
		f.run(id, "s")
	}
	other := f.run("other", "t")
	f.same(other.Number, int64(1))
	for _, id := range names[:3] {
		_, err := f.c.Runs.EndRun(f.ctx, profiles.RunEnd{RunID: id, Status: profiles.RunCompleted, EndedAt: start}, profiles.EventBounds{})
		f.must(err)
	}
	runs, err := f.c.Runs.Runs(f.ctx, "s")
	f.must(err)
	for i, r := range runs {
		f.same([]any{r.ID, r.Number}, []any{names[i], int64(i + 1)})
	}
	open, err := f.c.Runs.OpenRuns(f.ctx)
	f.must(err)
	found := map[string]bool{}
	for _, r := range open {
		found[r.ID] = true
	}
	f.same(found, map[string]bool{names[3]: true, "other": true})
	runs, err = f.c.Runs.Runs(f.ctx, "none")
	f.must(err)
	f.same(runs, []profiles.Run{})
}
