package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldbtest"
	"github.com/stasisd/stasis/session/access"
)

var alice = access.Caller{KeyID: "key-a", UserID: "alice", Rights: []access.Right{access.RightUse}}

// fakeSessions are sessions that all belong to alice, and keys of which only alice's
// exists.
type fakeSessions struct{}

func (fakeSessions) Record(_ context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error) {
	rec := profiles.Session{ID: id, UserID: alice.UserID}
	return rec, c.OnSession(id, rec.UserID, nil, p)
}

func (fakeSessions) AwaitRescue(context.Context, string) error { return nil }

func (fakeSessions) RegisterConnection(_ context.Context, c access.Caller, _ func(error)) (leave func(), err error) {
	if c.KeyID != alice.KeyID {
		return nil, fault.New(fault.Unauthorized, "fake", "the key was deleted")
	}
	return func() {}, nil
}

// freeTurns are turns that never wait.
type freeTurns struct{}

func (freeTurns) Take(context.Context, string) (func(), error) { return func() {}, nil }

// unsealed is a Sealer that seals nothing.
type unsealed struct{}

func (unsealed) Seal(plain []byte) ([]byte, error)    { return plain, nil }
func (unsealed) Unseal(sealed []byte) ([]byte, error) { return sealed, nil }

// newReader returns a Reader of a catalogue with one session, s.
func newReader(t *testing.T) (*Reader, *Journal) {
	t.Helper()
	db := sqldbtest.Open(t, time.Now)
	if err := db.Sessions.CreateSession(t.Context(), profiles.Session{ID: "s", UserID: alice.UserID, CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	journal := NewJournal(db.Runs, unsealed{}, time.Now, slog.New(slog.DiscardHandler))
	return NewReader(ReaderConfig{Journal: journal, Store: db.Runs, Sessions: fakeSessions{}, Keys: fakeSessions{}, Masks: freeTurns{}}), journal
}

// A stream that fails to begin and a stream that is closed both release their slots.
func TestStreamsReleaseTheirSlots(t *testing.T) {
	r, _ := newReader(t)
	for range maxSessionStreams + 1 {
		stream, err := r.Follow(t.Context(), alice, "s", FollowRequest{})
		if err != nil {
			t.Fatal(err)
		}
		stream.Close()
		if _, err := r.Follow(t.Context(), access.Caller{KeyID: "deleted", UserID: alice.UserID, Rights: alice.Rights}, "s", FollowRequest{}); err == nil {
			t.Fatal("a key that does not exist can follow")
		}
	}
	if r.streams.all != 0 {
		t.Errorf("%d slots were not released", r.streams.all)
	}
}

// An event has its time in UTC, and an empty object as data if its record has none. A
// page without events has an empty list. Only the session's own runs have pages.
func TestAnswersOfEvents(t *testing.T) {
	at := time.Date(2026, 11, 20, 19, 0, 0, 0, time.FixedZone("CET", 3600))
	const want = `{"run_id":"r","sequence":3,"type":"paused","timestamp":"2026-11-20T18:00:00Z","data":{}}`
	got, err := json.Marshal(eventOf(profiles.Event{RunID: "r", Sequence: 3, Type: "paused", At: at, Sealed: []byte("secret")}))
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}

	r, journal := newReader(t)
	journal.Begin("s").End(t.Context(), profiles.RunCompleted, "")
	runs, err := r.Runs(t.Context(), alice, "s")
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	page, err := r.RunEvents(t.Context(), alice, "s", runs[0].ID, 1, 10, false)
	if err != nil || page.Events == nil || len(page.Events) != 0 {
		t.Errorf("a page after the last event: %+v, %v", page, err)
	}
	if _, err := r.RunEvents(t.Context(), alice, "other", runs[0].ID, 0, 10, false); !fault.Is(err, fault.RunNotFound) {
		t.Errorf("a run of another session: %v", err)
	}
}
