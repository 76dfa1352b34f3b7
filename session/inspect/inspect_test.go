package inspect

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
)

var (
	alice = access.Caller{KeyID: "key-a", UserID: "alice", Rights: []access.Right{access.RightUse}}
	bob   = access.Caller{KeyID: "key-b", UserID: "bob", Rights: []access.Right{access.RightUse}}
)

// fakeSession is a session with its record.
type fakeSession struct {
	rec      profiles.Session
	live     bool
	ends     func() // called by Info, to end the session meanwhile
	rescuing bool
	rights   *access.LiveSession
	measured int // calls of Measure
	read     int // how often the record was read
}

func (o *fakeSession) Session(_ context.Context, id string) (profiles.Session, error) {
	o.read++
	if id != o.rec.ID {
		return profiles.Session{}, access.NoSession(id)
	}
	return o.rec, nil
}

func (o *fakeSession) Sessions(context.Context, profiles.SessionFilter) ([]profiles.Session, string, error) {
	return []profiles.Session{o.rec}, "next", nil
}

func (o *fakeSession) Find(id string) Live {
	if !o.live || id != o.rec.ID {
		return nil
	}
	return o
}

func (o *fakeSession) Rescuing(string) bool { return o.rescuing }

func (o *fakeSession) UndoUntil(string) (time.Time, bool) { return time.Time{}, false }

func (o *fakeSession) Rights() *access.LiveSession { return o.rights }

func (o *fakeSession) Info(context.Context) (answer.Info, error) {
	if o.ends != nil {
		o.ends()
		return answer.Info{}, fault.New(fault.SessionNotRunning, "test", "the session has ended")
	}
	return answer.Info{Session: o.rec, HasAgent: true}, nil
}

func (o *fakeSession) Measure(context.Context) <-chan struct{} {
	o.measured++
	ended := make(chan struct{})
	close(ended)
	return ended
}

func newFakeSession() *fakeSession {
	return &fakeSession{rec: profiles.Session{ID: "s", UserID: "alice", KeyID: "key-a", Status: profiles.StatusReady}, live: true,
		rights: access.NewLiveSession("s", "alice", "key-a", time.Now)}
}

// A live session describes itself. One that has ended meanwhile is described by its
// record. Only a live session has tickets.
func TestGet(t *testing.T) {
	o := newFakeSession()
	i, ctx := New(o, o), t.Context()
	info, err := i.Get(ctx, alice, "s")
	if err != nil || !info.HasAgent || info.Tickets[access.PurposeCDP] == "" {
		t.Errorf("live: %+v, %v", info, err)
	}
	o.ends = func() { o.live, o.rec.Status = false, profiles.StatusCompleted }
	info, err = i.Get(ctx, alice, "s")
	if err != nil || info.Status != profiles.StatusCompleted || len(info.Tickets) > 0 {
		t.Errorf("ended meanwhile: %+v, %v", info, err)
	}
	o.rescuing = true
	if info, err = i.Get(ctx, alice, "s"); err != nil || !info.Rescuing {
		t.Errorf("being rescued: %+v, %v", info, err)
	}
	for _, who := range []access.Caller{bob, {}} {
		if _, err := i.Get(ctx, who, "s"); err == nil {
			t.Errorf("%+v sees it", who)
		}
	}
	if _, err := i.RestoreReport(ctx, alice, "s"); !fault.Is(err, fault.NotFound) {
		t.Errorf("the report of a fresh session: %v", err)
	}
}

// Only an Examine and a list measure the memory of a live session.
func TestExamine(t *testing.T) {
	o := newFakeSession()
	i, ctx := New(o, o), t.Context()
	if _, err := i.Get(ctx, alice, "s"); err != nil || o.measured != 0 {
		t.Errorf("get: %d, %v", o.measured, err)
	}
	if info, err := i.Examine(ctx, alice, "s"); err != nil || info.ID != "s" || o.measured != 1 {
		t.Errorf("examine: %d, %+v, %v", o.measured, info, err)
	}
	if _, err := i.Examine(ctx, bob, "s"); !fault.Is(err, fault.SessionNotFound) || o.measured != 1 {
		t.Errorf("another user's: %d, %v", o.measured, err)
	}
	if _, _, err := i.List(ctx, alice, request.List{Limit: 1}); err != nil || o.measured != 2 {
		t.Errorf("list: %d, %v", o.measured, err)
	}
	o.ends = func() { o.live, o.rec.Status = false, profiles.StatusCompleted }
	if info, err := i.Examine(ctx, alice, "s"); err != nil || info.Status != profiles.StatusCompleted {
		t.Errorf("ended meanwhile: %+v, %v", info, err)
	}
}

// A list has only sessions that the caller may see. The list of a user that the caller
// may not act for is empty.
func TestList(t *testing.T) {
	o := newFakeSession()
	i := New(o, o)
	page, next, err := i.List(t.Context(), alice, request.List{Limit: 1})
	if err != nil || len(page) != 1 || page[0].Tickets[access.PurposeView] == "" || next != "next" {
		t.Errorf("%+v, %q, %v", page, next, err)
	}
	if page, _, err := i.List(t.Context(), bob, request.List{UserID: "alice"}); err != nil || len(page) != 0 {
		t.Errorf("another user's: %+v, %v", page, err)
	}
}

// Here describes live sessions without their records, and others by them. It leaves out what is
// unknown and what the caller may not look at.
func TestHere(t *testing.T) {
	o := newFakeSession()
	i, ctx, ids := New(o, o), t.Context(), []string{"unknown", "s"}
	found, err := i.Here(ctx, alice, ids)
	if err != nil || len(found) != 1 || !found[0].HasAgent || found[0].Tickets[access.PurposeCDP] == "" || o.measured != 1 || o.read != 1 {
		t.Errorf("live: %+v, %v after %d measurements and %d reads", found, err, o.measured, o.read)
	}
	for _, ends := range []func(){func() { o.live = false }, nil} { // while it is described, and before
		o.ends = ends
		if found, err = i.Here(ctx, alice, ids); err != nil || len(found) != 1 || found[0].HasAgent || len(found[0].Tickets) > 0 {
			t.Errorf("ended: %+v, %v", found, err)
		}
	}
	o.live = true
	if found, err := i.Here(ctx, bob, ids); err != nil || len(found) != 0 {
		t.Errorf("another user's: %+v, %v", found, err)
	}
	if _, err := i.Here(ctx, access.Caller{}, ids); !fault.Is(err, fault.Forbidden) {
		t.Errorf("without the right: %v", err)
	}
}
