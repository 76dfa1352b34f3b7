package settings

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/quota"
)

// changedElsewhere has the settings of a user that another node changes.
type changedElsewhere struct {
	Records
	most  int64
	reads int
}

func (c *changedElsewhere) User(context.Context, string) (profiles.User, error) {
	c.reads++
	return profiles.User{Settings: profiles.JSON(Settings{Quotas: &quota.Quotas{Sessions: &c.most}})}, nil
}

// A quota that another node has changed is in force here within seconds. Until then the quotas of
// a user are read once.
func TestQuotasOfAnotherNode(t *testing.T) {
	now := time.Unix(1000, 0)
	records := &changedElsewhere{most: 1}
	users := NewUsers(records, Config{Now: func() time.Time { return now }})
	sessions := func() int64 {
		t.Helper()
		q, err := users.Quotas(t.Context(), "ann")
		if err != nil {
			t.Fatal(err)
		}
		return *q.Sessions
	}
	first, again := sessions(), sessions()
	if first != 1 || again != 1 || records.reads != 1 {
		t.Errorf("quotas of %d and %d, read %d times", first, again, records.reads)
	}
	records.most = 2
	now = now.Add(cachedFor)
	if got := sessions(); got != 2 {
		t.Errorf("the quota is %d, 5 seconds after another node has made it 2", got)
	}
	records.most = 3
	now = now.Add(-time.Hour) // the clock was set back
	if got := sessions(); got != 3 {
		t.Errorf("the quota is %d after the clock was set back", got)
	}
}
