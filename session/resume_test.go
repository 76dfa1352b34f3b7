package session

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// resumed resumes a session and returns its description.
func (r *rig) resumed(c access.Caller, id string) answer.Info {
	r.t.Helper()
	a, err := r.Resume(r.t.Context(), c, id, "")
	if err != nil || !a.Success || a.Status != "resumed" {
		r.t.Fatalf("resume: %+v, %v", a, err)
	}
	info, err := r.Get(r.t.Context(), c, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return info
}

// An ended session lives again with the same ID and options, from its newest snapshot,
// more than once.
func TestResumeAnEndedSession(t *testing.T) {
	r := newRig(t, nil)
	want := state.Overrides{UserAgent: "Mine", Proxy: &state.Proxy{Server: "http://p.example:1", Password: "hunter2"}}
	first := r.create(alice, func(c *request.Create) {
		c.AgentName, c.Labels, c.Overrides, c.Idle = "bot", map[string]string{"a": "b"}, want, 7*time.Minute
	})
	snap := r.end(alice, first.ID, filesystem).Snapshot.ID
	rec, err := r.catalogue.Session(t.Context(), first.ID)
	if err != nil || len(rec.SealedRequest) == 0 || strings.Contains(string(rec.SealedRequest), "hunter2") {
		t.Fatalf("the record keeps %q, %v", rec.SealedRequest, err)
	}

	again := r.resumed(alice, first.ID)
	switch {
	case again.ID != first.ID, again.UserID != "alice", again.Engine != first.Engine, again.AgentName != "bot", again.Labels["a"] != "b":
		t.Errorf("another session: %+v", again)
	case again.Status != profiles.StatusReady, !again.EndedAt.IsZero(), again.Reason.Code != "", again.Outcome != nil, !again.ExpiresAt.After(first.ExpiresAt):
		t.Errorf("the session did not start again: %+v", again)
	case again.Tickets[access.PurposeCDP] == "" || again.Tickets[access.PurposeCDP] == first.Tickets[access.PurposeCDP]:
		t.Errorf("ticket %q after %q", again.Tickets[access.PurposeCDP], first.Tickets[access.PurposeCDP])
	case again.Restored == nil || again.Restored.SnapshotID != snap:
		t.Errorf("restored %+v, want %s", again.Restored, snap)
	}
	if got := r.browsers.last().options.Overrides; len(got.DifferingNames(want)) > 0 {
		t.Errorf("overrides %+v", got)
	}
	if l := r.sessions.Find(first.ID); l.request.Idle != 7*time.Minute {
		t.Errorf("idle limit %s", l.request.Idle)
	}
	if a, err := r.Resume(t.Context(), alice, first.ID, ""); err != nil || a.Status != "already_running" {
		t.Errorf("a second resume: %+v, %v", a, err)
	}
	newer := r.end(alice, first.ID, filesystem).Snapshot.ID
	if third := r.resumed(alice, first.ID); third.Restored.SnapshotID != newer {
		t.Errorf("restored %s, want %s", third.Restored.SnapshotID, newer)
	}
	r.end(alice, first.ID, none)
	r.wantHistory(first.ID, "1 completed (asked): started saved ended", "2 completed (asked): restored saved ended", "3 completed (asked): restored ended")
	if n := r.dirs(); n != 0 {
		t.Errorf("%d directories are left", n)
	}
}

// However a session ended, it resumes from its rescue.
func TestResumeFromARescue(t *testing.T) {
	for name, end := range map[string]func(*rig, string){
		"crash": func(r *rig, id string) {
			r.browsers.last().die()
			await(r.t, "the session has ended", func() bool { return r.sessions.Find(id) == nil })
		},
		"killed with the daemon": func(r *rig, _ string) {
			r.kill()
			r.Service = r.daemon(nil)
			if err := recovered(r.t.Context(), r.Service); err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.create(alice, nil).ID
			for n := range 2 { // a session that is resumed and killed again can be resumed again
				end(r, id)
				row, err := r.catalogue.NewestSnapshot(t.Context(), id)
				if err != nil || !row.Rescue {
					t.Fatalf("round %d: %+v, %v", n, row, err)
				}
				if info := r.resumed(alice, id); info.Restored.SnapshotID != row.ID {
					t.Errorf("restored %s, want %s", info.Restored.SnapshotID, row.ID)
				}
			}
			if runs, err := r.Runs(t.Context(), alice, id); err != nil || len(runs) != 3 {
				t.Errorf("%d runs, %v", len(runs), err)
			}
		})
	}
}

func TestResumeWhatWasNeverSaved(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { c.AgentName = "bot" }).ID
	r.end(alice, id, none)
	_, err := r.Resume(t.Context(), alice, id, "")
	wantCode(t, err, fault.NoSnapshot)
	if !strings.Contains(fault.MessageOf(err), "if_missing: fresh") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	if s := r.status(id); s != profiles.StatusCompleted {
		t.Errorf("the session is %s", s)
	}
	resume := func(id string, fresh bool) (answer.Info, error) {
		return r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.SessionID, c.Resume, c.FreshIfNone = id, true, fresh }))
	}
	_, err = resume(id, false)
	wantCode(t, err, fault.NoSnapshot)
	info, err := resume(id, true)
	if err != nil || info.ID != id || info.Restored != nil || info.AgentName != "bot" {
		t.Fatalf("%+v, %v", info, err)
	}
	if info, err = resume(id, true); err != nil || !info.Existing {
		t.Errorf("a running session: %+v, %v", info, err)
	}
	_, err = resume("unknown", false)
	wantCode(t, err, fault.SessionNotFound)
	if info, err = resume("unknown", true); err != nil || info.ID != "unknown" || info.Existing {
		t.Errorf("%+v, %v", info, err)
	}
}

// A create that resumes a session may change its permission policy, limits and labels. An
// option that it names otherwise must be the same; what it leaves out stays.
func TestResumeWithOptions(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) {
		c.SessionID, c.Overrides.Proxy, c.Labels, c.Idle = "mine", &state.Proxy{Server: "http://p.example:1"}, map[string]string{"team": "qa"}, 10*time.Minute
	}).ID
	r.end(alice, id, filesystem)
	resume := func(change func(*request.Create), given ...string) (answer.Info, error) {
		return r.Create(t.Context(), alice, newCreate(func(c *request.Create) {
			c.SessionID, c.Resume = id, true
			change(c)
		}).Given(given))
	}
	proxy := func(server string) func(*request.Create) {
		return func(c *request.Create) { c.Overrides.Proxy = &state.Proxy{Server: server} }
	}
	fails := func(field string, change func(*request.Create), given ...string) {
		t.Helper()
		_, err := resume(change, given...)
		wantCode(t, err, fault.InvalidField)
		if err == nil || !strings.HasPrefix(fault.MessageOf(err), field+": ") {
			t.Errorf("got %v, want %s named", err, field)
		}
	}
	fails("proxy", proxy("http://q.example:1"), "proxy")
	fails("engine", func(c *request.Create) { c.Engine = browser.EngineShell }, "engine", "labels")
	_, err := resume(func(c *request.Create) { c.UserID = "bob" })
	wantCode(t, err, fault.UserMismatch)
	if rec, err := r.catalogue.Session(t.Context(), id); err != nil || rec.EndedAt.IsZero() || rec.Labels["team"] != "qa" {
		t.Errorf("a refused resume changed the session: %+v, %v", rec, err)
	}
	policy := &state.PermissionPolicy{Default: state.DecisionDeny}
	info, err := resume(func(c *request.Create) {
		proxy("http://p.example:1")(c)
		c.Overrides.PermissionPolicy, c.Labels, c.Idle, c.Lifetime = policy, map[string]string{"team": "dev"}, time.Minute, time.Hour
	}, "proxy", "permission_policy", "labels", "max_lifetime_seconds")
	if err != nil || info.Labels["team"] != "dev" || info.ExpiresAt.After(info.CreatedAt.Add(2*time.Hour)) {
		t.Fatalf("%+v, %v", info, err)
	}
	l := r.sessions.Find(id)
	if got := l.request; got.Idle != 10*time.Minute || got.Lifetime != time.Hour || got.Overrides.Proxy.Server != "http://p.example:1" {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(policy, r.browsers.last().options.Overrides.PermissionPolicy); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	fails("labels", func(c *request.Create) { c.Labels = nil }, "labels")
	if _, err := resume(func(c *request.Create) { c.Labels = map[string]string{"team": "dev"} }, "labels"); err != nil {
		t.Errorf("the same labels as the live session's: %v", err)
	}
	r.end(alice, id, filesystem)
	if info := r.resumed(alice, id); info.Labels["team"] != "dev" {
		t.Errorf("a later resume has the labels %v", info.Labels)
	}
}

// A session goes back to an older snapshot of its own under its ID, with the conversation,
// the task and the notes of that time. A resume of the newest one goes forward again.
func TestResumeFromOlderSnapshot(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	say := func(kind, text string) {
		t.Helper()
		if _, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Type: kind, Content: text}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(task string, want ...string) {
		t.Helper()
		got, talk := r.conversation(id, 0, false)
		if diff := cmp.Diff(want, got); diff != "" || talk.Status.ExecutionStatus != task {
			t.Errorf("the task is %s, want %s; -want +got:\n%s", talk.Status.ExecutionStatus, task, diff)
		}
	}
	noted := func(want string) {
		t.Helper()
		n, err := r.SessionNotes(t.Context(), alice, id)
		if err != nil || strings.Join(n.Data.KeyDecisions, " ") != want {
			t.Errorf("notes %+v, %v, want %s", n.Data, err, want)
		}
	}
	back := func(to string) {
		t.Helper()
		if _, err := r.Resume(t.Context(), alice, id, to); err != nil {
			t.Fatal(err)
		}
		if info, err := r.Get(t.Context(), alice, id); err != nil || info.BaseSnapshotID != to {
			t.Errorf("it started from %s, %v", info.BaseSnapshotID, err)
		}
	}
	empty := r.checkpoint(id, request.Checkpoint{}).Snapshot.ID
	say("USER", "one")
	say("QUESTION", "which?")
	r.note(alice, id, agent.NoteData{KeyDecisions: []string{"first"}})
	first := r.checkpoint(id, request.Checkpoint{}).Snapshot.ID
	say("USER", "three")
	say("DONE", "four")
	r.note(alice, id, agent.NoteData{KeyDecisions: []string{"second"}})
	_, err := r.Resume(t.Context(), alice, id, first)
	wantCode(t, err, fault.EnvironmentInUse)
	last := r.end(alice, id, filesystem).Snapshot.ID

	back(first)
	is("waiting_for_input", "USER one", "QUESTION which?")
	noted("first")
	say("USER", "five")
	r.end(alice, id, none)
	r.resumed(alice, id) // from last: the run after first was thrown away
	is("finished", "USER one", "QUESTION which?", "USER three", "DONE four")
	r.end(alice, id, none)
	back(empty)
	is("ready")
	noted("")
	say("USER", "six")
	other := r.end(alice, id, filesystem).Snapshot.ID
	r.resumed(alice, id)
	is("running", "USER six")
	r.end(alice, id, none)
	back(last)
	is("finished", "USER one", "QUESTION which?", "USER three", "DONE four")
	noted("first second")
	r.end(alice, id, none)
	back(other)
	is("running", "USER six")
	r.end(alice, id, none)

	_, foreign := r.saved(alice, filesystem)
	_, hidden := r.saved(bob, filesystem)
	for to, code := range map[string]fault.Code{foreign: fault.InvalidField, hidden: fault.SnapshotNotFound, "nothing": fault.SnapshotNotFound} {
		_, err := r.Resume(t.Context(), alice, id, to)
		wantCode(t, err, code)
		if err == nil || !strings.HasPrefix(fault.MessageOf(err), "snapshot_id: ") {
			t.Error(err)
		}
	}
	is("finished", "USER six")
}

// Of many concurrent resumes one restores the session. The others get already_running or
// request_in_progress.
func TestConcurrentResumes(t *testing.T) {
	r := newRig(t, nil)
	id, _ := r.saved(alice, filesystem)
	made := len(r.browsers.all())
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]int{}
	)
	for range 20 {
		group.Go(func() {
			a, err := r.Resume(context.Background(), alice, id, "")
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				a.Status = string(fault.CodeOf(err))
			}
			answers[a.Status]++
		})
	}
	group.Wait()
	if answers["resumed"] != 1 || answers["resumed"]+answers["already_running"]+answers["request_in_progress"] != 20 {
		t.Errorf("answers %v", answers)
	}
	if n := len(r.browsers.all()) - made; n != 1 {
		t.Errorf("%d Chromes were started", n)
	}
}

func TestResumeIsRefused(t *testing.T) {
	t.Run("another user's", func(t *testing.T) {
		r := newRig(t, nil)
		id, _ := r.saved(alice, filesystem)
		_, err := r.Resume(t.Context(), bob, id, "")
		wantCode(t, err, fault.SessionNotFound)
		_, err = r.Resume(t.Context(), alice, "none", "")
		wantCode(t, err, fault.SessionNotFound)
	})
	t.Run("too many sessions", func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxSessions = 1 })
		id, _ := r.saved(alice, filesystem)
		other := r.create(alice, nil).ID
		_, err := r.Resume(t.Context(), alice, id, "")
		wantCode(t, err, fault.TooManySessions)
		r.end(alice, other, none)
		r.resumed(alice, id)
	})
	t.Run("being ended", func(t *testing.T) {
		r := newRig(t, nil)
		id := r.create(alice, nil).ID
		began, goOn := make(chan struct{}), make(chan struct{})
		r.browsers.on("capture", func(*fakeChrome) error { close(began); <-goOn; return nil })
		ended := make(chan error, 1)
		go func() { _, err := r.End(context.Background(), alice, id, filesystem); ended <- err }()
		<-began
		_, err := r.Resume(t.Context(), alice, id, "")
		wantCode(t, err, fault.SessionEnding)
		close(goOn)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		r.resumed(alice, id)
	})
	t.Run("its Chrome does not start", func(t *testing.T) {
		r := newRig(t, nil)
		id, snap := r.saved(alice, filesystem)
		r.browsers.fails(errBroken, "restored")
		if _, err := r.Resume(t.Context(), alice, id, ""); err == nil {
			t.Fatal("the session was resumed")
		}
		if s := r.status(id); s != profiles.StatusCompleted || r.dirs() != 0 {
			t.Errorf("the session is %s, %d directories", s, r.dirs())
		}
		r.browsers.works()
		if info := r.resumed(alice, id); info.Restored.SnapshotID != snap {
			t.Errorf("restored %+v", info.Restored)
		}
	})
	t.Run("the daemon dies during the resume", func(t *testing.T) {
		r := newRig(t, nil)
		id, snap := r.saved(alice, filesystem)
		r.catalogue.fails(errBroken, "UpdateSession")
		if _, err := r.Resume(t.Context(), alice, id, ""); err == nil {
			t.Fatal("the session was resumed")
		}
		r.kill()
		r.Service = r.daemon(nil)
		if err := recovered(t.Context(), r.Service); err != nil {
			t.Fatal(err)
		}
		if info := r.resumed(alice, id); info.Restored.SnapshotID != snap {
			t.Errorf("restored %+v", info.Restored)
		}
	})
}

// A session that started from the default moves it from its own version, but not over
// what others have saved since, also after a resume.
func TestResumeAndTheDefault(t *testing.T) {
	r := newRig(t, nil)
	fresh, _ := r.saved(alice, asDefault)
	id := r.create(alice, fromAlice).ID
	for range 2 {
		if a := r.end(alice, id, asDefault); !a.Default.Moved {
			t.Errorf("its own default did not move on: %+v", a.Default)
		}
		r.resumed(alice, id)
	}
	r.saved(alice, asDefault)
	if a, err := r.End(t.Context(), alice, id, asDefault); err != nil || a.Default.Moved || a.Success || a.Code != fault.VersionConflict {
		t.Errorf("the default of another session was replaced: %+v, %v", a, err)
	}
	r.resumed(alice, fresh)
	if a := r.end(alice, fresh, asDefault); !a.Default.Moved {
		t.Errorf("a session that did not start from the default: %+v", a.Default)
	}
}

// A repeated end moves the default to what the first one saved, if it asks to overwrite, or if the
// first did not ask for it. A repeat of an end that has moved the default does not move it
// again.
func TestDefaultAfterTheEnd(t *testing.T) {
	r := newRig(t, nil)
	again := func(id string, end request.End) (moved bool, version int64) {
		t.Helper()
		a, err := r.End(t.Context(), alice, id, end)
		if err != nil || a.Deleted || a.Snapshot == nil || a.Default == nil || a.Success != (a.Code == "") {
			t.Fatalf("%+v, %v", a, err)
		}
		if info, err := r.Get(t.Context(), alice, id); err != nil || a.Default.Moved && !strings.Contains(string(info.Outcome), `"moved":true`) {
			t.Errorf("the recorded outcome is %s, %v", info.Outcome, err)
		}
		return a.Default.Moved, a.Default.Version
	}
	is := func(what string, id string, end request.End, moved bool, version int64) {
		t.Helper()
		if gotMoved, gotVersion := again(id, end); gotMoved != moved || gotVersion != version {
			t.Errorf("%s: moved %v to %d, want %v and %d", what, gotMoved, gotVersion, moved, version)
		}
	}
	overwrite := asDefault
	overwrite.Conflict = save.Overwrite
	later, _ := r.saved(alice, filesystem)
	is("asked for later", later, asDefault, true, 1)
	is("asked for again", later, asDefault, false, 1)
	from := r.create(alice, fromAlice).ID
	r.saved(alice, asDefault)
	if a := r.end(alice, from, asDefault); a.Default.Moved || a.Code != fault.VersionConflict {
		t.Errorf("%+v", a)
	}
	is("without overwrite", from, asDefault, false, 2)
	is("with overwrite", from, overwrite, true, 3)
	is("with overwrite again", from, overwrite, false, 3)
	r.saved(alice, asDefault)
	is("repeated after another moved it", from, asDefault, false, 3)
	if d, err := r.catalogue.Default(t.Context(), "alice"); err != nil || d.Version != 4 {
		t.Errorf("the default is %+v, %v", d, err)
	}
	viewer := access.Caller{KeyID: "key-v", UserID: "alice", Rights: []access.Right{access.RightView}}
	_, err := r.End(t.Context(), viewer, from, overwrite)
	wantCode(t, err, fault.Forbidden)
}
