package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/request"
)

// A resume's report has the notes from before, and the session keeps them: its own, and
// those it was restored with.
func TestResumeRestoresNotes(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.note(alice, id, agent.NoteData{KeyDecisions: []string{"one"}})
	r.end(alice, id, filesystem)
	second := r.create(alice, func(c *request.Create) { c.FromSession = id }).ID
	r.end(alice, second, filesystem)
	for _, resumed := range []string{id, second} {
		report := r.resumed(alice, resumed).Restored.Notes
		if report == nil || report.SessionID != id || strings.Join(dataOf(t, report).KeyDecisions, " ") != "one" {
			t.Errorf("resumed with %+v", report)
		}
		n, err := r.SessionNotes(t.Context(), alice, resumed)
		if err != nil || n.SessionID != id || strings.Join(n.Data.KeyDecisions, " ") != "one" {
			t.Errorf("the session has %+v, %v", n, err)
		}
	}
	r.note(alice, id, agent.NoteData{KeyDecisions: []string{"two"}})
	if n, err := r.SessionNotes(t.Context(), alice, id); err != nil || strings.Join(n.Data.KeyDecisions, " ") != "one two" {
		t.Errorf("after a new note: %+v, %v", n, err)
	}
}

// The options of the create stay in force after a resume: screenshots, checkpoints,
// restarts after a crash, and the webhook. So it is after a second resume and after a
// kill of the daemon.
func TestResumeKeepsCreateOptions(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) {
		autoSaveEvery(5*time.Millisecond, 2)(c)
		onCrash(c)
		withWebhook(c)
		c.Record = []string{RecordScreenshot}
	}).ID
	last := r.awaitNewer(id, "")
	for life, end := range []func(){
		func() { r.end(alice, id, filesystem) },
		func() {
			r.kill()
			r.Service = r.daemon(nil)
			if err := recovered(t.Context(), r.Service); err != nil {
				t.Fatal(err)
			}
		},
	} {
		end()
		before := len(r.sentTo(hookURL))
		if info := r.resumed(alice, id); info.WebhookURL != hookURL || !info.HasAgent {
			t.Errorf("life %d: webhook %q, agent %v", life, info.WebhookURL, info.HasAgent)
		}
		r.rewrite(r.browsers.last(), "changed in life "+string(rune('a'+life)))
		last = r.awaitNewer(id, last)
		r.browsers.last().emit(browser.EventNavigation, map[string]any{"url": "https://a.example/"})
		await(t, "a screenshot", func() bool {
			runs := r.history(id)
			return strings.Contains(runs[len(runs)-1], " screenshot")
		})
		r.crashChrome(id)
		if info, err := r.Get(t.Context(), alice, id); err != nil || info.Status != profiles.StatusReady || !info.BrowserRestarted {
			t.Errorf("life %d, after a crash: %s (%s), %v", life, info.Status, info.Reason, err)
		}
		received := strings.Join(r.sentTo(hookURL)[before:], ", ")
		for _, event := range []string{events.HookStatus, events.HookSaved, events.HookCrashed} {
			if !strings.Contains(received, event) {
				t.Errorf("life %d: the webhook received %s, but not %s", life, received, event)
			}
		}
	}
}
