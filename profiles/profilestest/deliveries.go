package profilestest

import (
	"errors"
	"fmt"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// notice returns a notice written a number of seconds after the start.
func notice(id string, after int) profiles.Notice {
	return profiles.Notice{ID: id, URL: "https://a.example/", Event: "session.created", Body: []byte("{\"слово\": \"\x00\"}"),
		At: start.Add(time.Duration(after) * time.Second)}
}

// notify queues notices of a session.
func (f *fixture) notify(id string, notices ...profiles.Notice) {
	f.Helper()
	got, err := f.c.Sessions.UpdateSession(f.ctx, id, func(s *profiles.Session) error { s.Notices = notices; return nil })
	f.must(err)
	if got.Notices != nil {
		f.Error("notices are read back")
	}
}

func (f *fixture) due(now time.Time, limit int) []string {
	f.Helper()
	all, err := f.c.Deliveries.DueDeliveries(f.ctx, now, now.Add(time.Hour), limit)
	f.must(err)
	var got []string
	for _, d := range all {
		got = append(got, d.ID)
	}
	return got
}

// attempt finishes an attempt of a delivery that had the given number of attempts before.
func (f *fixture) attempt(id string, attempts int, a profiles.Attempt) {
	f.Helper()
	d, err := f.c.Deliveries.Delivery(f.ctx, id)
	if !fault.Is(err, fault.NotFound) {
		f.must(err)
	}
	d.ID, d.Attempts = id, attempts
	f.must(f.c.Deliveries.FinishAttempt(f.ctx, d, a))
}

// A delivery is due until it is settled. Of each session and URL only the oldest is due.
func testDeliveries(f *fixture) {
	f.session("s", "ada")
	f.session("t", "bob")
	other := notice("3", 2)
	other.URL = "https://b.example/"
	f.notify("s", notice("1", 1), notice("2", 1), other)
	f.notify("t", notice("4", 3))
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	f.same(f.due(at(0), 0), []string(nil))
	f.same(f.due(at(2), 0), []string{"1", "3"})
	f.same(f.due(at(3), 0), []string{"1", "3", "4"})
	f.same(f.due(at(3), 2), []string{"1", "3"})
	next, err := f.c.Deliveries.NextDelivery(f.ctx, at(1))
	f.must(err)
	f.same(next, at(2))

	want := profiles.Delivery{Notice: notice("1", 1), SessionID: "s", UserID: "ada", State: profiles.DeliveryPending, Since: at(1), NextAt: at(1)}
	got, err := f.c.Deliveries.Delivery(f.ctx, "1")
	f.must(err)
	want.Sequence = got.Sequence
	f.same(got, want)

	f.attempt("1", 0, profiles.Attempt{State: profiles.DeliveryPending, At: at(4), NextAt: at(9), Error: "no"})
	f.attempt("1", 0, profiles.Attempt{State: profiles.DeliveryDelivered, At: at(4)}) // this attempt is already counted
	want.Attempts, want.LastAt, want.NextAt, want.LastError = 1, at(4), at(9), "no"
	got, err = f.c.Deliveries.Delivery(f.ctx, "1")
	f.must(err)
	f.same(got, want)
	f.same(f.due(at(8), 0), []string{"2", "3", "4"})
	f.same(f.due(at(9), 0), []string{"1", "3", "4"})

	f.attempt("1", 1, profiles.Attempt{State: profiles.DeliveryFailed, At: at(9), Error: "given up"})
	counts, err := f.c.Deliveries.CountDeliveries(f.ctx)
	f.must(err)
	f.same(counts, map[profiles.DeliveryState]int{profiles.DeliveryPending: 3, profiles.DeliveryFailed: 1})
	f.attempt("2", 0, profiles.Attempt{State: profiles.DeliveryDelivered, At: at(9)})
	f.attempt("none", 0, profiles.Attempt{State: profiles.DeliveryDelivered, At: at(9)})
	f.same(f.due(at(9), 0), []string{"3", "4"})
	got, err = f.c.Deliveries.Resend(f.ctx, "1", at(20))
	f.must(err)
	f.same([]any{got.State, got.Attempts, got.Resent, got.Since, got.NextAt}, []any{profiles.DeliveryPending, 2, 2, at(20), at(20)})
	_, err = f.c.Deliveries.Resend(f.ctx, "none", at(20))
	f.code(err, fault.NotFound)
	_, err = f.c.Deliveries.Delivery(f.ctx, "none")
	f.code(err, fault.NotFound)

	f.must(f.c.Deliveries.ExpireDeliveries(f.ctx, at(9))) // by the time of settling, not of writing
	_, err = f.c.Deliveries.Delivery(f.ctx, "2")
	f.must(err)
	f.must(f.c.Deliveries.ExpireDeliveries(f.ctx, at(10)))
	_, err = f.c.Deliveries.Delivery(f.ctx, "2")
	f.code(err, fault.NotFound)
	f.same(f.due(at(100), 0), []string{"1", "3", "4"})
	next, err = f.c.Deliveries.NextDelivery(f.ctx, at(100))
	f.must(err)
	f.same(next, time.Time{})
}

// A resend is kept, whatever the result of an attempt in progress. A delivery that is due
// later than any retry can be is due now.
func testResend(f *fixture) {
	f.session("s", "ada")
	f.notify("s", notice("1", 0))
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	f.attempt("1", 0, profiles.Attempt{State: profiles.DeliveryPending, At: at(1), NextAt: at(2)})
	onItsWay, err := f.c.Deliveries.Delivery(f.ctx, "1")
	f.must(err)
	resent, err := f.c.Deliveries.Resend(f.ctx, "1", at(3))
	f.must(err)
	for _, state := range []profiles.DeliveryState{profiles.DeliveryFailed, profiles.DeliveryDelivered} {
		f.must(f.c.Deliveries.FinishAttempt(f.ctx, onItsWay, profiles.Attempt{State: state, At: at(4)}))
		got, err := f.c.Deliveries.Delivery(f.ctx, "1")
		f.must(err)
		f.same(got, resent)
	}
	f.must(f.c.Deliveries.FinishAttempt(f.ctx, resent, profiles.Attempt{State: profiles.DeliveryPending, At: at(4), NextAt: at(9000)}))
	f.same(f.due(at(4), 0), []string{"1"})
	f.same(f.due(at(6000), 0), []string(nil))
}

// A notice exists if and only if the change that it reports exists.
func testNotices(f *fixture) {
	s := profiles.Session{ID: "s", UserID: "ada", CreatedAt: start, Notices: []profiles.Notice{notice("created", 0)}}
	f.must(f.c.Sessions.CreateSession(f.ctx, s))
	again := s
	again.Notices = []profiles.Notice{notice("again", 0)}
	f.code(f.c.Sessions.CreateSession(f.ctx, again), fault.SessionExists)
	read, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	s.Notices = nil
	f.same(read, s)

	refused := errors.New("refused")
	_, err = f.c.Sessions.UpdateSession(f.ctx, "s", func(s *profiles.Session) error { s.Notices = []profiles.Notice{notice("refused", 0)}; return refused })
	if !errors.Is(err, refused) {
		f.Errorf("got %v", err)
	}
	seen := map[string]profiles.Status{} // a catalogue may call for the notices more than once
	tells := func(id string) func(profiles.Session) []profiles.Notice {
		return func(s profiles.Session) []profiles.Notice {
			seen[id] = s.Status
			return []profiles.Notice{notice(id, 1)}
		}
	}
	f.n++
	_, err = f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: f.snapshot("snap", s), Notices: tells("saved"),
		End: &profiles.End{SessionID: "s", Status: profiles.StatusCompleted, EndedAt: start, Notices: tells("deleted")}})
	f.must(err)
	_, err = f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: f.snapshot("snap", s), Notices: tells("twice")}) // the ID is already in use
	if err == nil {
		f.Error("a snapshot was committed twice")
	}
	f.must(f.c.Sessions.EndSession(f.ctx, profiles.End{SessionID: "s", Status: profiles.StatusError, EndedAt: start, Notices: tells("ended")}))
	_, err = f.c.Users.UpdateUser(f.ctx, "ada", start, func(u *profiles.User) error {
		u.Notices, u.NoticesOf = []profiles.Notice{notice("expired", 1)}, "s"
		return nil
	})
	f.must(err)
	f.same(seen, map[string]profiles.Status{"saved": profiles.StatusCompleted, "deleted": profiles.StatusCompleted, "ended": profiles.StatusError})
	page, _, err := f.c.Deliveries.DeliveryPage(f.ctx, profiles.DeliveryFilter{})
	f.must(err)
	var got []string
	for _, d := range page {
		got = append(got, d.ID)
	}
	f.same(got, []string{"expired", "ended", "saved", "deleted", "created"})
}

func testDeliveryPages(f *fixture) {
	f.session("s", "ada")
	f.session("t", "bob")
	for i := range 5 {
		f.notify("s", notice(fmt.Sprint("s", i), i))
		f.notify("t", notice(fmt.Sprint("t", i), i))
	}
	f.attempt("s2", 0, profiles.Attempt{State: profiles.DeliveryDelivered, At: start})
	for _, x := range []struct {
		filter profiles.DeliveryFilter
		want   []string
	}{
		{profiles.DeliveryFilter{UserID: "ada", Limit: 2}, []string{"s4", "s3", "s2", "s1", "s0"}},
		{profiles.DeliveryFilter{UserID: "ada", State: profiles.DeliveryPending, Limit: 1}, []string{"s4", "s3", "s1", "s0"}},
		{profiles.DeliveryFilter{State: profiles.DeliveryDelivered, Limit: 3}, []string{"s2"}},
		{profiles.DeliveryFilter{UserID: "cid"}, nil},
	} {
		var got []string
		for more := true; more; more = x.filter.StartAfter != "" {
			page, next, err := f.c.Deliveries.DeliveryPage(f.ctx, x.filter)
			f.must(err)
			for _, d := range page {
				got = append(got, d.ID)
			}
			x.filter.StartAfter = next
		}
		f.same(got, x.want)
	}
	operators := notice("o", 9)
	operators.Operator = true
	f.notify("s", operators)
	for _, all := range []bool{false, true} {
		page, _, err := f.c.Deliveries.DeliveryPage(f.ctx, profiles.DeliveryFilter{UserID: "ada", Operator: all})
		f.must(err)
		f.same([]any{len(page) == 6, page[0].Operator}, []any{all, all})
	}
	for _, bad := range []string{"none", "t1", "o"} {
		_, _, err := f.c.Deliveries.DeliveryPage(f.ctx, profiles.DeliveryFilter{UserID: "ada", StartAfter: bad})
		f.code(err, fault.InvalidField)
	}
}
