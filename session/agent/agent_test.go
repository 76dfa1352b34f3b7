package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/profiles/sqldbtest"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/events"
)

var (
	alice = access.Caller{KeyID: "key-a", UserID: "alice", Rights: []access.Right{access.RightUse}}
	bob   = access.Caller{KeyID: "key-b", UserID: "bob", Rights: []access.Right{access.RightUse}}
	admin = access.Caller{KeyID: "key-r", UserID: "default", AllUsers: true, Rights: []access.Right{access.RightUse, access.RightSecrets, access.RightAdmin}}
)

// fakeSessions are records of sessions; none of the sessions is live.
type fakeSessions struct {
	Sessions
	records map[string]profiles.Session // by ID
}

func sessions(records ...profiles.Session) fakeSessions {
	f := fakeSessions{records: map[string]profiles.Session{}}
	for _, rec := range records {
		f.records[rec.ID] = rec
	}
	return f
}

func (f fakeSessions) Record(_ context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error) {
	if err := c.RequireForAny(p); err != nil {
		return profiles.Session{}, err
	}
	rec, found := f.records[id]
	if !found {
		return rec, access.NoSession(id)
	}
	return rec, c.OnSession(id, rec.UserID, []string{rec.KeyID}, p)
}

func (f fakeSessions) Report(context.Context, string, string, string, events.Fields) {}

// database returns an empty catalogue.
func database(t *testing.T) *sqldb.DB {
	t.Helper()
	return sqldbtest.Open(t, time.Now)
}

// clock returns a clock that advances with each call.
func clock() func() time.Time {
	var mu sync.Mutex
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Millisecond)
		return at
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if got := fault.CodeOf(err); got != code {
		t.Errorf("got %q (%v), want %q", got, err, code)
	}
}
