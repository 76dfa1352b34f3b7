package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

const (
	shortsOfRun = 2
	shortPause  = 500 * time.Millisecond
	// usersOfShorts is how many users the short sessions are of. Sessions of one user compete
	// for its default.
	usersOfShorts = 2
)

// short makes one session after the other: it restores a user's default, visits the site, and
// saves a new default.
type short struct {
	*run
	number  int
	made    int
	open    string // a session that may still live
	visited bool   // it has made its visit
	asked   int    // how often its end was asked for
}

// step makes a session, or ends the last one.
func (s *short) step(ctx context.Context) {
	if s.open == "" {
		s.made++
		s.open, s.visited, s.asked = fmt.Sprintf("short-%d-%d", s.number, s.made), false, 0
		s.visited = s.begin(ctx, s.open) == nil
	}
	s.end(ctx)
}

// largeEvery is how often a session stores so much that its archive is uploaded in parts. Such a
// save is no default, and is deleted after it was examined.
const largeEvery = 6

// fill stores random bytes in a page, more than an upload without parts may have.
const fill = `new Promise((done, failed) => {
  const bytes = new Uint8Array(18 << 20);
  for (let i = 0; i < bytes.length; i += 65536) crypto.getRandomValues(bytes.subarray(i, i + 65536));
  const open = indexedDB.open('large');
  open.onupgradeneeded = () => open.result.createObjectStore('bytes');
  open.onerror = failed;
  open.onsuccess = () => {
    const write = open.result.transaction('bytes', 'readwrite', { durability: 'strict' });
    write.objectStore('bytes').put(bytes, 0);
    write.oncomplete = () => done(true);
    write.onerror = failed;
  };
})`

func (s *short) large() bool { return s.made%largeEvery == 0 }

// user returns the user of the session being made.
func (s *short) user() string {
	if s.large() {
		return "large"
	}
	return shortUser(s.made)
}

func shortUser(n int) string { return fmt.Sprint("short-", n%usersOfShorts) }

// begin creates a session and visits the site with a cookie that only this session has.
func (s *short) begin(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, saveDeadline)
	defer cancel()
	var made rig.Session
	if err := s.API().Call(ctx, http.MethodPost, "/v1/sessions", s.body(id), &made); err != nil {
		return err
	}
	conn, page, err := attach(ctx, made.CDP)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := s.restored(ctx, conn, id); err != nil {
		return err
	}
	return s.visit(ctx, conn, page, id)
}

// body returns the body of a create.
func (s *short) body(id string) map[string]any {
	body := map[string]any{"session_id": id, "user_id": s.user()}
	if !s.large() {
		body["restore_default_environment_from_user_id"], body["if_missing"] = s.user(), "fresh"
	}
	return body
}

// restored looks whose cookie a new session has.
func (s *short) restored(ctx context.Context, conn *rig.Conn, id string) error {
	was, err := cookieOf(ctx, conn)
	if err == nil && was != "" && !strings.HasPrefix(was, "short-") {
		s.saves.wrong(fmt.Sprintf("%s, of %s, was restored with the cookie %q of another session", id, s.user(), was))
	}
	return err
}

// visit makes the visit of a session.
func (s *short) visit(ctx context.Context, conn *rig.Conn, page, id string) error {
	err := visit(ctx, conn, page, s.site, id)
	if err != nil || !s.large() {
		return err
	}
	var filled struct{ Result struct{ Value bool } }
	err = conn.Call(ctx, page, "Runtime.evaluate", map[string]any{"expression": fill, "awaitPromise": true}, &filled)
	if err == nil && !filled.Result.Value {
		err = errors.New("the page could not store its bytes")
	}
	return err
}

// visit has a page visit the site.
func visit(ctx context.Context, conn *rig.Conn, page, site, name string) error {
	var gone struct{ ErrorText string }
	err := conn.Call(ctx, page, "Page.navigate", map[string]string{"url": site + "/?visit=" + name}, &gone)
	if err == nil && gone.ErrorText != "" {
		err = errors.New(gone.ErrorText)
	}
	return err
}

// ending is the answer to a DELETE.
type ending struct {
	Snapshot *struct {
		ID     string
		Rescue bool
	}
	Default *struct {
		Moved   bool
		Version int64
	}
}

// end ends the session, and saves it if it has made its visit. It tries again in the next step
// unless the session has surely ended.
func (s *short) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveDeadline)
	defer cancel()
	mode := "none"
	if s.visited {
		mode = "filesystem"
		if !s.large() {
			mode += "&save_as_default=true"
		}
	}
	s.asked++
	var answer ending
	err := s.API().Call(ctx, http.MethodDelete, "/v1/sessions/"+s.open+"?save_snapshot_mode="+mode, nil, &answer)
	var refused *rig.Refused
	conflict := errors.As(err, &refused) && refused.Code == "version_conflict"
	if conflict {
		err = json.Unmarshal([]byte(refused.Body), &answer) // it has saved
	}
	if refused != nil && (refused.Code == "session_not_found" || refused.Code == "no_snapshot") {
		s.open = ""
	}
	if err != nil {
		return
	}
	if s.visited && answer.Snapshot != nil {
		s.confirmed(answer, conflict)
	}
	s.open = ""
}

// confirmed notes a confirmed save.
func (s *short) confirmed(answer ending, conflict bool) {
	made := answer.Snapshot
	if made.Rescue { // of what a fault has left; the visit may be missing
		s.saves.add(saved{id: made.ID, session: s.open, large: s.large()})
		return
	}
	s.saves.add(saved{id: made.ID, session: s.open, cookie: s.open, large: s.large()})
	switch {
	case conflict && s.asked == 1: // a repeated DELETE may lose to a later save after the first one has won
		s.saves.refused(s.user(), made.ID)
	case answer.Default != nil && answer.Default.Moved:
		s.saves.moved(s.user(), answer.Default.Version, made.ID)
	}
}

// ended reports whether no session of it lives.
func (s *short) ended() bool { return s.open == "" }
