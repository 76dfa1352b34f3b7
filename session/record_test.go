package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/rescue"
)

// history returns the runs of a session, each with its status and events.
func (r *rig) history(id string) []string {
	r.t.Helper()
	runs, err := r.Runs(r.t.Context(), alice, id)
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, run := range runs {
		page, err := r.RunEvents(r.t.Context(), alice, id, run.ID, 0, 0, false)
		if err != nil {
			r.t.Fatal(err)
		}
		line := fmt.Sprintf("%d %s (%s):", run.Number, run.Status, run.Cause)
		for i, e := range page.Events {
			if e.Sequence != int64(i+1) {
				r.t.Errorf("event %d of run %d has number %d", i+1, run.Number, e.Sequence)
			}
			line += " " + e.Type
		}
		all = append(all, line)
	}
	return all
}

// wantHistory checks a session's history.
func (r *rig) wantHistory(id string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.history(id)); diff != "" {
		r.t.Errorf("-want +got:\n%s", diff)
	}
}

// Each Chrome of a session is a separate run with its events, however it started and
// ended.
func TestRunsOfASession(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://a.example/?token=abc"})
	leave := r.attach(id)
	for _, do := range []func(context.Context, access.Caller, string) (answer.Acknowledgement, error){r.Pause, r.Pause, r.resumes, r.resumes} {
		if _, err := do(t.Context(), alice, id); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	r.end(alice, id, memory)
	r.wantHistory(id, "1 completed (asked): started navigated client_connected paused resumed client_disconnected saved ended")

	restored := r.create(alice, func(c *request.Create) { c.FromSession = id }).ID
	r.end(alice, restored, none)
	r.wantHistory(restored, "1 completed (asked): restored ended")

	// A client that stays to the end is disconnected in the record.
	attended := r.create(alice, nil).ID
	defer r.attach(attended)()
	r.end(alice, attended, filesystem)
	r.wantHistory(attended, "1 completed (asked): started client_connected client_disconnected saved ended")

	_, err := r.Runs(t.Context(), bob, id)
	wantCode(t, err, fault.SessionNotFound)
	runs, err := r.Runs(t.Context(), alice, id)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.RunEvents(t.Context(), bob, id, runs[0].ID, 0, 0, false)
	wantCode(t, err, fault.SessionNotFound)
	_, err = r.RunEvents(t.Context(), alice, restored, runs[0].ID, 0, 0, false)
	wantCode(t, err, fault.RunNotFound)
	_, err = r.RunEvents(t.Context(), alice, id, runs[0].ID, 9, 0, false)
	wantCode(t, err, fault.InvalidField)
	_, err = r.RunEvents(t.Context(), alice, id, runs[0].ID, 0, 0, true)
	wantCode(t, err, fault.Forbidden)
	for whole, want := range map[bool]string{false: "https://a.example/?token=***", true: "https://a.example/?token=abc"} {
		page, err := r.RunEvents(t.Context(), admin, id, runs[0].ID, 1, 1, whole)
		var data struct{ URL string }
		if err == nil {
			err = json.Unmarshal(page.Events[0].Data, &data)
		}
		if err != nil || data.URL != want {
			t.Errorf("whole %v: %q, %v", whole, data.URL, err)
		}
	}
}

// A run ends with its Chrome, whatever happens to the session. The next Chrome begins the
// next run.
func TestRunsThatFail(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.fails(errBroken, "capture")
	_, err := r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.SaveFailed)
	r.browsers.works()
	const goesOn = "1 %s: started save_failed"
	r.wantHistory(id, fmt.Sprintf(goesOn, "running ()"))

	r.catalogue.fails(errBroken, "Commit")
	_, err = r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.SaveFailed)
	first := fmt.Sprintf(goesOn, "failed ("+afterSave+")") + " save_failed ended"
	r.wantHistory(id, first, "2 running (): restored")

	r.browsers.fails(errBroken, "restored")
	_, err = r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.SaveFailed)
	second := "2 failed (" + notReopened + "): restored save_failed ended"
	r.wantHistory(id, first, second)
	r.browsers.works()
	r.catalogue.works()
	if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
		t.Fatal(err)
	}
	r.wantHistory(id, first, second, "3 running (): restored")

	r.browsers.last().die()
	r.ended(id)
	await(t, "the run's end", func() bool { return !strings.Contains(r.history(id)[2], "running") })
	r.wantHistory(id, first, second, "3 failed ("+chromeCrashed+"): restored saved ended")
}

// changeReasonText changes the text of the reason in a session's record.
func (r *rig) changeReasonText(id string) {
	r.t.Helper()
	if _, err := r.catalogue.UpdateSession(r.t.Context(), id, func(rec *profiles.Session) error {
		rec.Reason.Text = "worded anew"
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

// Runs that a dead daemon left open are ended with their cause. So is the run of a
// session whose own end was its last record.
func TestRunsAfterAKill(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://a.example/"})
	over := r.create(alice, nil).ID
	if _, err := r.Runs(t.Context(), alice, over); err != nil { // wait until it is recorded
		t.Fatal(err)
	}
	if err := r.catalogue.EndSession(t.Context(), profiles.End{SessionID: over, Status: profiles.StatusTerminated, Reason: profiles.ReasonIdle.With("idle_timeout"), EndedAt: r.deps.Now()}); err != nil {
		t.Fatal(err)
	}
	rescued := r.create(alice, nil).ID
	if err := r.catalogue.EndSession(t.Context(), profiles.End{SessionID: rescued, Status: profiles.StatusTerminated, Reason: profiles.ReasonKilled.With("worded anew"), EndedAt: r.deps.Now()}); err != nil {
		t.Fatal(err)
	}
	r.browsers.fails(errBroken, "capture") // the dying daemon may still try a save
	r.kill()
	r.browsers.works()
	r.Service = r.daemon(nil)
	r.catalogue.fails(errBroken, "EndRun") // the start is interrupted when everything is rescued
	if err := recovered(t.Context(), r.Service); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	r.catalogue.works()
	for range 2 { // a second start finds nothing to do
		if err := recovered(t.Context(), r.Service); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]string{
			id:   "1 failed (" + rescue.Killed + "): started navigated saved ended",
			over: "1 cancelled (idle_timeout): started ended",
			// The code says that the daemon was killed, whatever the text is.
			rescued: "1 failed (" + rescue.Killed + "): started ended",
		} {
			if got := strings.ReplaceAll(strings.Join(r.history(id), "; "), " save_failed", ""); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

// A session's feed has its events while it lives, and its end.
func TestFollow(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	_, err := r.Follow(t.Context(), bob, id, events.FollowRequest{})
	wantCode(t, err, fault.SessionNotFound)
	_, err = r.Follow(t.Context(), alice, id, events.FollowRequest{Secrets: true})
	wantCode(t, err, fault.Forbidden)
	_, err = r.Follow(t.Context(), alice, id, events.FollowRequest{After: &events.Position{Run: 1, Sequence: 2}})
	wantCode(t, err, fault.InvalidField)
	feed, err := r.Follow(t.Context(), admin, id, events.FollowRequest{Secrets: true})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://a.example/?code=1"})
	r.end(alice, id, none)
	var got []string
	for {
		e, err := feed.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Type+" "+string(e.Data))
	}
	want := []string{`started {"chrome":"156.0.8078.79","engine":"chrome"}`, `navigated {"url":"https://a.example/?code=1"}`, `ended {"cause":"asked","status":"completed"}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A follower of a session that is between two runs waits; the feed does not end.
func TestFollowBetweenRuns(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.fails(errBroken, "restored")
	r.catalogue.fails(errBroken, "Commit")
	_, err := r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.SaveFailed)
	r.browsers.works()
	r.catalogue.works()
	feed, err := r.Follow(t.Context(), alice, id, events.FollowRequest{After: &events.Position{Run: 1, Sequence: 3}})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	type given struct {
		events.StreamEvent
		err error
	}
	next := make(chan given, 1)
	go func() { e, err := feed.Next(t.Context()); next <- given{e, err} }()
	select {
	case n := <-next:
		t.Fatalf("the follower did not wait: %+v, %v", n.StreamEvent, n.err)
	case <-time.After(20 * time.Millisecond): // it waits
	}
	if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
		t.Fatal(err)
	}
	if n := <-next; n.err != nil || n.Type != events.Restored || n.At != (events.Position{Run: 2, Sequence: 1}) {
		t.Errorf("got %+v, %v", n.StreamEvent, n.err)
	}
	go func() { e, err := feed.Next(t.Context()); next <- given{e, err} }()
	r.end(alice, id, none)
	if n := <-next; n.err != nil || n.Type != events.Ended {
		t.Errorf("got %+v, %v", n.StreamEvent, n.err)
	}
	if e, err := feed.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("after the session's end: %+v, %v", e, err)
	}
}

// A screenshot is taken after a navigation if the create requested it.
func TestPictures(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { c.Record = []string{RecordScreenshot} }).ID
	plain := r.create(alice, nil).ID
	for _, c := range r.browsers.all() {
		c.emit(browser.EventNavigation, map[string]any{"url": "https://a.example/"})
	}
	await(t, "a screenshot", func() bool { return strings.HasSuffix(r.history(id)[0], "started navigated screenshot") })
	r.wantHistory(plain, "1 running (): started navigated")
}
