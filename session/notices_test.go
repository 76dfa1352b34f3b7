package session

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/request"
)

const hookURL = "https://hooks.example/"

func withWebhook(c *request.Create) { c.WebhookURL = hookURL }

// The times in a webhook's body, from their "T", and the end that each must have.
var (
	timeOfDay    = regexp.MustCompile(`[0-9]T[0-9]{2}:[0-9]{2}:[0-9]{2}([^"]*)"`)
	milliseconds = regexp.MustCompile(`^\.[0-9]{3}Z$`)
)

// sentTo returns the events sent to a URL, oldest first, each with the session's status.
func (r *rig) sentTo(url string) []string {
	r.t.Helper()
	page, _, err := r.catalogue.DeliveryPage(r.t.Context(), profiles.DeliveryFilter{Operator: true})
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, d := range page {
		var body struct {
			Event   string
			Session struct {
				ID     string `json:"session_id"`
				Status string
				CDPURL string `json:"cdp_url"`
				Agent  bool   `json:"has_agent"`
			}
		}
		if err := json.Unmarshal(d.Body, &body); err != nil || body.Event != d.Event || body.Session.ID != d.SessionID || body.Session.CDPURL != "" {
			r.t.Errorf("%s: %s, %v", d.Event, d.Body, err)
		}
		for _, at := range timeOfDay.FindAllStringSubmatch(string(d.Body), -1) {
			if !milliseconds.MatchString(at[1]) {
				r.t.Errorf("%s is not a time with milliseconds: %s", at[0], d.Body)
			}
		}
		if d.URL == hookURL && !body.Session.Agent {
			r.t.Errorf("%s: the session of a webhook has no agent", d.Event)
		}
		if d.URL == url {
			all = append([]string{d.Event + " " + body.Session.Status}, all...)
		}
	}
	return all
}

func (r *rig) wantSent(url string, want ...string) {
	r.t.Helper()
	if diff := cmp.Diff(want, r.sentTo(url)); diff != "" {
		r.t.Errorf("-want +sent:\n%s", diff)
	}
}

// Each change of a session is sent as it was after the change, to the session's own
// webhook and to the daemon's.
func TestWebhooksOfASession(t *testing.T) {
	r := newRig(t, nil)
	r.hookURL = "https://operator.example/"
	r.Service = r.daemon(nil)
	ctx := t.Context()
	info := r.create(alice, withWebhook)
	if !info.HasAgent {
		t.Error("a session with a webhook has no agent")
	}
	if _, err := r.Pause(ctx, alice, info.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resume(ctx, alice, info.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Checkpoint(ctx, alice, info.ID, request.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	r.end(alice, info.ID, filesystem)
	want := []string{"session.created ready", "session.status_changed paused", "session.status_changed ready", "session.saved ready",
		"session.saved completed", "session.status_changed completed", "session.deleted completed"}
	r.wantSent(hookURL, want...)
	r.wantSent("https://operator.example/", want...)

	own, _, err := r.deliveries.Deliveries(ctx, alice, "", 0, "")
	if err != nil || len(own) != len(want) {
		t.Errorf("alice sees %d, %v", len(own), err)
	}
	if all, _, err := r.deliveries.Deliveries(ctx, bob, "", 0, ""); err != nil || len(all) != 0 {
		t.Errorf("bob sees %d, %v", len(all), err)
	}
	all, _, err := r.deliveries.Deliveries(ctx, admin, "", 0, "")
	if err != nil || len(all) != 2*len(want) {
		t.Errorf("an admin sees %d, %v", len(all), err)
	}
	_, _, err = r.deliveries.Deliveries(ctx, access.Caller{UserID: "alice"}, "", 0, "")
	wantCode(t, err, fault.Forbidden)
	_, err = r.deliveries.Resend(ctx, bob, own[0].ID)
	wantCode(t, err, fault.NotFound)
	for _, d := range all {
		if d.URL != hookURL { // to the daemon's own URL
			_, err = r.deliveries.Resend(ctx, alice, d.ID)
			wantCode(t, err, fault.NotFound)
			break
		}
	}
	if d, err := r.deliveries.Resend(ctx, alice, own[0].ID); err != nil || d.State != "pending" || d.ID != own[0].ID {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestWebhooksOfOtherEnds(t *testing.T) {
	r := newRig(t, nil)
	r.create(bob, nil) // it has no webhook
	id := r.create(alice, withWebhook).ID
	r.browsers.last().die()
	await(t, "the session has ended", func() bool { return r.sessions.Find(id) == nil })
	r.wantSent(hookURL, "session.created ready", "session.status_changed error", "session.crashed error",
		"session.saved error", "session.status_changed error", "session.deleted error")
}

// A resumed session notifies its webhook as before.
func TestWebhooksOfAResumedSession(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, withWebhook).ID
	r.end(alice, id, filesystem)
	before := len(r.sentTo(hookURL))
	if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
		t.Fatal(err)
	}
	r.end(alice, id, none)
	if got := strings.Join(r.sentTo(hookURL)[before:], ", "); got != "session.status_changed ready, session.status_changed completed, session.deleted completed" {
		t.Errorf("sent %q", got)
	}
}

// A webhook is notified of a task when the task's state changes.
func TestWebhooksOfATask(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	id := r.create(alice, withWebhook).ID
	for _, kind := range []string{"LOG", "THOUGHT", "QUESTION", "USER", "DONE", "LOG", "ERROR", "LOG"} {
		if _, err := r.Send(ctx, alice, id, agent.MessageRequest{Type: kind, Content: "secret words"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Cancel(ctx, alice, id); err != nil {
		t.Fatal(err)
	}
	r.wantSent(hookURL, "session.created ready", "task.started ready", "task.waiting_for_input ready", "task.message ready", "task.finished ready",
		"task.started ready", "task.error ready", "task.started ready", "task.finished ready")
}

// A webhook counts as an agent for a message without a type.
func TestWebhookIsAnAgent(t *testing.T) {
	r := newRig(t, nil)
	plain, notified := r.create(alice, nil).ID, r.create(alice, withWebhook).ID
	for id, want := range map[string]bool{plain: false, notified: true} {
		if sent, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Content: "go on"}); err != nil || sent.HasAgent != want {
			t.Errorf("has_agent %v, %v, want %v", sent.HasAgent, err, want)
		}
	}
	r.wantSent(hookURL, "session.created ready", "task.started ready", "task.message ready")
}

// A crash that the session survives is sent as a crash. No end is sent.
func TestWebhookOfASurvivedCrash(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { withWebhook(c); onCrash(c) }).ID
	r.crashChrome(id)
	r.wantSent(hookURL, "session.created ready", "session.status_changed error", "session.crashed error", "session.status_changed ready")
}

// A crash is sent even if its data cannot be saved, and not again with the session's end.
// If it could not be sent at once, it is sent with the next event.
func TestWebhookOfACrashThatCannotBeSaved(t *testing.T) {
	for name, failing := range map[string]struct {
		methods []string
		want    []string
	}{
		"the store is full": {[]string{"Commit"}, []string{"session.created ready", "session.status_changed error", "session.crashed error",
			"session.status_changed error", "session.status_changed completed", "session.deleted completed"}},
		"nothing can be written": {[]string{"Commit", "UpdateSession"}, []string{"session.created ready", "session.status_changed error", "session.crashed error",
			"session.status_changed completed", "session.deleted completed"}},
	} {
		r := newRig(t, nil)
		ctx := t.Context()
		id := r.create(alice, withWebhook).ID
		r.catalogue.fails(fault.New(fault.StoreFull, "fake", "no space"), failing.methods...)
		r.browsers.on("kill", func(*fakeChrome) error {
			if failing.methods[len(failing.methods)-1] == "UpdateSession" {
				r.catalogue.fails(fault.New(fault.StoreFull, "fake", "no space"), "Commit")
			}
			return nil
		})
		r.browsers.last().die()
		await(t, "the save has failed", func() bool {
			info, err := r.Get(ctx, alice, id)
			return err == nil && info.Reason.Code == profiles.ReasonCrashKept
		})
		r.catalogue.works()
		r.end(alice, id, none)
		if diff := cmp.Diff(failing.want, r.sentTo(hookURL)); diff != "" {
			t.Errorf("%s, -want +sent:\n%s", name, diff)
		}
	}
}

// A crash that could not be sent before is sent with the end of the session.
func TestWebhookOfACrashWithItsEnd(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, withWebhook).ID
	r.catalogue.fails(errBroken, "UpdateSession")
	r.browsers.last().die()
	await(t, "the session has ended", func() bool { return r.sessions.Find(id) == nil })
	r.wantSent(hookURL, "session.created ready", "session.saved error", "session.status_changed error", "session.crashed error", "session.deleted error")
}

// An end that was not recorded is not sent. The next daemon sends what a killed daemon
// left.
func TestWebhooksOverAKill(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	id := r.create(alice, withWebhook).ID
	r.catalogue.fails(errBroken, "EndSession")
	if _, err := r.End(ctx, alice, id, none); err == nil {
		t.Fatal("the session ended")
	}
	r.wantSent(hookURL, "session.created ready")
	r.kill()
	r.Service = r.daemon(nil)
	if err := recovered(ctx, r.Service); err != nil {
		t.Fatal(err)
	}
	r.wantSent(hookURL, "session.created ready", "session.status_changed error", "session.saved terminated", "session.status_changed terminated", "session.deleted terminated")
}

// An expired login is sent once, until it was good again.
func TestWebhookOfAnExpiredLogin(t *testing.T) {
	r := newRig(t, nil)
	r.setCheck(false)
	id := r.create(alice, withWebhook).ID
	r.end(alice, id, asDefault)
	before := len(r.sentTo(hookURL))
	for _, found := range []bool{true, false, false, true, false} {
		r.browsers.on("check", func(c *fakeChrome) error { c.loggedOut = !found; return nil })
		if _, err := r.CheckDefault(t.Context(), alice, "alice"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(r.sentTo(hookURL)[before:], ", "); got != "user.login_expired completed, user.login_expired completed" {
		t.Errorf("sent %q", got)
	}
}
