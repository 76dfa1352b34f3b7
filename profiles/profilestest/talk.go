package profilestest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// A conversation is read as it was written, in order and page by page, even if the clock
// is set back meanwhile. A message changes the session's execution status and nothing
// else of the session.
func testMessages(f *fixture) {
	s := f.session("s", "ada")
	f.session("t", "ada")
	var want []profiles.Message
	for i, execution := range []profiles.Execution{"", profiles.ExecutionWaiting, "", profiles.ExecutionFinished} {
		m := profiles.Message{SessionID: "s", Type: "LOG", Content: fmt.Sprintf("слово %d\x00", i), At: start.Add(-time.Duration(i) * time.Hour)}
		if i%2 == 1 {
			m.Metadata = []byte(`{"a": 1}`)
		}
		got, err := f.c.Messages.AddMessage(f.ctx, m, execution)
		f.must(err)
		m.ID = int64(i + 1)
		f.same(got, m)
		want = append(want, m)
		if execution != "" {
			s.Execution = execution
		}
		now, err := f.c.Sessions.Session(f.ctx, "s")
		f.must(err)
		f.same(now, s)
	}
	_, err := f.c.Messages.AddMessage(f.ctx, profiles.Message{SessionID: "none"}, "")
	f.code(err, fault.SessionNotFound)

	for _, page := range []struct {
		after int64
		limit int
		want  []profiles.Message
		more  bool
	}{{0, 0, want, false}, {0, 2, want[:2], true}, {2, 2, want[2:], false}, {3, 9, want[3:], false}, {4, 1, nil, false}, {99, 1, nil, false}} {
		got, more, err := f.c.Messages.Messages(f.ctx, "s", page.after, page.limit)
		f.must(err)
		f.same(got, page.want)
		f.same(more, page.more)
	}
	other, _, err := f.c.Messages.Messages(f.ctx, "t", 0, 0)
	f.must(err)
	f.same(other, []profiles.Message(nil))

	// Pages of large messages are short, and no message is left out.
	big := strings.Repeat("x", profiles.MaxMessagePage)
	for range 2 {
		_, err := f.c.Messages.AddMessage(f.ctx, profiles.Message{SessionID: "t", Content: big, At: start}, "")
		f.must(err)
	}
	page, more, err := f.c.Messages.Messages(f.ctx, "t", 0, 0)
	f.must(err)
	if len(page) != 1 || !more {
		f.Errorf("a page has %d messages, more: %v", len(page), more)
	}
}

// A session that goes back to a snapshot has the messages and the task of that time. IDs of
// messages are never used again. A session that only continues goes back if its
// conversation lacks messages of the snapshot.
func testGoingBack(f *fixture) {
	f.session("s", "ada")
	say := func(want int64, execution profiles.Execution) {
		f.Helper()
		m, err := f.c.Messages.AddMessage(f.ctx, profiles.Message{SessionID: "s", Type: "LOG", At: start}, execution)
		f.must(err)
		f.same(m.ID, want)
	}
	commit := func(id string) {
		f.Helper()
		_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: profiles.Snapshot{ID: id, SessionID: "s", UserID: "ada", Mode: "filesystem", CreatedAt: start, ArchiveID: "archive"}})
		f.must(err)
	}
	resume := func(from string, back bool, task profiles.Execution, ids ...int64) {
		f.Helper()
		s, err := f.c.Sessions.UpdateSession(f.ctx, "s", func(s *profiles.Session) error {
			s.Continues, s.GoesBack = from, back
			return nil
		})
		f.must(err)
		f.same([]any{s.Execution, s.Continues, s.GoesBack}, []any{task, "", false})
		page, more, err := f.c.Messages.Messages(f.ctx, "s", 0, len(ids))
		f.must(err)
		var got []int64
		for _, m := range page {
			got = append(got, m.ID)
		}
		f.same(got, ids)
		f.same(more, false)
	}
	commit("none")
	say(1, profiles.ExecutionRunning)
	say(2, profiles.ExecutionWaiting)
	commit("two")
	say(3, profiles.ExecutionFinished)
	resume("two", false, profiles.ExecutionFinished, 1, 2, 3)
	resume("two", true, profiles.ExecutionWaiting, 1, 2)
	say(4, profiles.ExecutionError)
	commit("four")
	resume("four", false, profiles.ExecutionError, 1, 2, 4)
	resume("none", true, "")
	resume("none", false, "")
	resume("two", false, profiles.ExecutionWaiting, 1, 2)
	resume("four", true, profiles.ExecutionError, 1, 2, 4)
	say(5, profiles.ExecutionRunning)
	resume("four", false, profiles.ExecutionRunning, 1, 2, 4, 5)
}

// Of many concurrent messages each gets its own ID, without a gap.
func testMessageRace(f *fixture) {
	const speakers, each = 8, 5
	f.session("s", "ada")
	f.together(speakers, func(_ int, c Catalogue) {
		for range each {
			_, err := c.Messages.AddMessage(f.ctx, profiles.Message{SessionID: "s", Type: "LOG", At: start}, profiles.ExecutionRunning)
			f.code(err, "")
		}
	})
	all, _, err := f.c.Messages.Messages(f.ctx, "s", 0, 0)
	f.must(err)
	for i, m := range all {
		f.same(m.ID, int64(i+1))
	}
	f.same(len(all), speakers*each)
}

// note stores a note and checks that the previous data was was.
func (f *fixture) note(user, session, was, data string) profiles.Note {
	f.Helper()
	f.n++
	n, err := f.c.Notes.PutNote(f.ctx, profiles.Note{UserID: user, SessionID: session, Event: "checkpoint", UpdatedAt: start.Add(time.Duration(f.n) * time.Second)},
		func(before json.RawMessage) (json.RawMessage, error) {
			f.same(string(before), was)
			return json.RawMessage(data), nil
		})
	f.must(err)
	return n
}

// Every version of a note is kept. Note returns the newest version of a session ID, and
// LatestNote what the user stored last.
func testNotes(f *fixture) {
	_, err := f.c.Notes.LatestNote(f.ctx, "ada")
	f.code(err, fault.NoteNotFound)
	_, err = f.c.Notes.Note(f.ctx, "ada", "s")
	f.code(err, fault.NoteNotFound)

	one := f.note("ada", "s", "", `{"n": 1}`)
	f.same(one, profiles.Note{UserID: "ada", SessionID: "s", Version: 1, Event: "checkpoint", Data: []byte(`{"n": 1}`),
		CreatedAt: start.Add(time.Second), UpdatedAt: start.Add(time.Second)})
	other := f.note("ada", "t", "", `{}`)
	bob := f.note("bob", "s", "", `{"bob": 1}`)
	two := f.note("ada", "s", `{"n": 1}`, `{"n": 2}`)
	f.same([]any{two.Version, two.CreatedAt}, []any{int64(2), one.CreatedAt})

	for _, look := range []struct {
		user, session string
		want          profiles.Note
	}{{"ada", "s", two}, {"ada", "t", other}, {"bob", "s", bob}} {
		got, err := f.c.Notes.Note(f.ctx, look.user, look.session)
		f.must(err)
		f.same(got, look.want)
	}
	latest, err := f.c.Notes.LatestNote(f.ctx, "ada")
	f.must(err)
	f.same(latest, two)
	for _, page := range []struct {
		limit  int
		before int64
		want   []profiles.Note
	}{{0, 0, []profiles.Note{two, one}}, {1, 0, []profiles.Note{two}}, {1, 2, []profiles.Note{one}}, {1, 1, nil}} {
		got, err := f.c.Notes.NoteHistory(f.ctx, "ada", "s", page.limit, page.before)
		f.must(err)
		f.same(got, page.want)
	}

	// If the clock is set back, a note's update is not earlier than its first version, and
	// the last stored note is still the latest.
	late, err := f.c.Notes.PutNote(f.ctx, profiles.Note{UserID: "ada", SessionID: "s", UpdatedAt: start.Add(-time.Hour)},
		func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"n": 3}`), nil })
	f.must(err)
	f.same([]any{late.Version, late.CreatedAt, late.UpdatedAt}, []any{int64(3), one.CreatedAt, one.CreatedAt})
	latest, err = f.c.Notes.LatestNote(f.ctx, "ada")
	f.must(err)
	f.same(latest, late)

	refused := errors.New("refused")
	_, err = f.c.Notes.PutNote(f.ctx, profiles.Note{UserID: "cid", SessionID: "s", UpdatedAt: start},
		func(json.RawMessage) (json.RawMessage, error) { return nil, refused })
	if !errors.Is(err, refused) {
		f.Errorf("the callback's error was returned as %v", err)
	}
	cid, err := f.c.Users.User(f.ctx, "cid")
	f.must(err)
	f.same(cid, profiles.User{ID: "cid"})
}

// Concurrent stores build on each other, and none is lost.
func testNoteRace(f *fixture) {
	const writers = 8
	f.together(writers, func(_ int, c Catalogue) {
		_, err := c.Notes.PutNote(f.ctx, profiles.Note{UserID: "ada", SessionID: "s", UpdatedAt: start},
			func(was json.RawMessage) (json.RawMessage, error) { return append(was[:len(was):len(was)], '1'), nil })
		f.code(err, "")
	})
	n, err := f.c.Notes.Note(f.ctx, "ada", "s")
	f.must(err)
	f.same([]any{n.Version, string(n.Data)}, []any{int64(writers), strings.Repeat("1", writers)})
}
