package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
)

// saved is a save that was confirmed.
type saved struct {
	id, session string
	cookie      string // the visit that it has, or an older one of the same session; "": any
	large       bool   // it is deleted after it was examined
}

// saves are the saves that were confirmed.
type saves struct {
	mu       sync.Mutex
	all      []saved
	known    map[string]bool
	examined int                         // how many of all were examined
	moves    map[string]map[int64]string // confirmed moves of users' defaults by saves
	losers   map[string][]string         // snapshots of saves that were refused as users' defaults
	found    []string                    // what the load itself has found wrong
	late     map[string]bool             // visits without an answer, by session and cookie
}

// add adds a save. A repeated answer names the same one again.
func (s *saves) add(one saved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]bool{}
	}
	if one.id != "" && !s.known[one.id] {
		s.known[one.id] = true
		s.all = append(s.all, one)
	}
}

// moved adds a move of a default that was confirmed.
func (s *saves) moved(user string, version int64, snapshot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.moves == nil {
		s.moves = map[string]map[int64]string{}
	}
	if s.moves[user] == nil {
		s.moves[user] = map[int64]string{}
	}
	s.moves[user][version] = snapshot
}

// refused adds a save that was answered that another one has moved its user's default.
func (s *saves) refused(user, snapshot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.losers == nil {
		s.losers = map[string][]string{}
	}
	s.losers[user] = append(s.losers[user], snapshot)
}

// mayFollow notes a visit without an answer. A node that passed its command on and was stopped
// sends it when it continues, after other visits.
func (s *saves) mayFollow(session, cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.late == nil {
		s.late = map[string]bool{}
	}
	s.late[session+" "+cookie] = true
}

// follows reports whether a session may have an older cookie than its last visit's.
func (s *saves) follows(session, cookie string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.late[session+" "+cookie]
}

// wrong notes content that is not what was saved.
func (s *saves) wrong(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, what)
}

// examine reads all saves since the last time, and restores some in a browser. It returns those
// that are lost or have other content.
func (r *run) examineSaves(ctx context.Context) (lost []string, read, restored int, err error) {
	s := r.saves
	s.mu.Lock()
	fresh := s.all[s.examined:]
	s.examined = len(s.all)
	lost, s.found = s.found, nil
	s.mu.Unlock()
	for _, one := range fresh {
		if err := r.read(ctx, one); err != nil {
			lost = append(lost, fmt.Sprintf("snapshot %s of %s: %v", one.id, one.session, err))
		}
	}
	for i := range min(r.settings.restore, len(fresh)) {
		one := fresh[(len(fresh)-1-i*len(fresh)/r.settings.restore)%len(fresh)]
		if err := r.restore(ctx, one); err != nil {
			lost = append(lost, fmt.Sprintf("the restore of snapshot %s of %s: %v", one.id, one.session, err))
		}
		restored++
	}
	if err := r.deleteLarge(ctx); err != nil {
		return nil, 0, 0, err
	}
	return lost, len(fresh), restored, ctx.Err()
}

// deleteLarge deletes the large snapshots, which would fill the memory.
func (r *run) deleteLarge(ctx context.Context) error {
	s := r.saves
	s.mu.Lock()
	defer s.mu.Unlock()
	var stay []saved
	for _, one := range s.all {
		if !one.large {
			stay = append(stay, one)
			continue
		}
		if err := r.API().Call(ctx, http.MethodDelete, "/v1/snapshots/"+one.id, nil, nil); err != nil {
			return fmt.Errorf("snapshot %s cannot be deleted: %w", one.id, err)
		}
	}
	s.all, s.examined = stay, len(stay)
	return nil
}

// read verifies a snapshot's archive and compares the cookie in its state.
func (r *run) read(ctx context.Context, one saved) error {
	if err := r.API().Call(ctx, http.MethodPost, "/v1/snapshots/"+one.id+"/verify", nil, nil); err != nil {
		return err
	}
	var jar []struct{ Name, Value string }
	if err := r.API().Call(ctx, http.MethodGet, "/v1/snapshots/"+one.id+"/state?format=puppeteer", nil, &jar); err != nil {
		return err
	}
	has := ""
	for _, c := range jar {
		if c.Name == visitCookie {
			has = c.Value
		}
	}
	return r.saves.compare(one, has)
}

// compare is [saved.compare], and knows of late visits.
func (s *saves) compare(one saved, has string) error {
	err := one.compare(has)
	if err != nil && s.follows(one.session, has) {
		return nil
	}
	return err
}

// compare returns an error if a snapshot has an older visit than the save, or another session's.
func (one saved) compare(has string) error {
	if one.cookie == "" || has == one.cookie {
		return nil
	}
	want, err := strconv.Atoi(one.cookie)
	n, err2 := strconv.Atoi(has)
	if err == nil && err2 == nil && n >= want { // a visit during the save
		return nil
	}
	return fmt.Errorf("it has visit %q, want %q", has, one.cookie)
}

// restore restores a snapshot in a browser and compares the cookie.
func (r *run) restore(ctx context.Context, one saved) error {
	ctx, cancel := context.WithTimeout(ctx, 2*saveDeadline)
	defer cancel()
	s, err := r.API().Create(ctx, map[string]any{"restore_from_environment_id": one.id})
	if err != nil {
		return err
	}
	conn, _, err := attach(ctx, s.CDP)
	if err == nil {
		var has string
		if has, err = cookieOf(ctx, conn); err == nil {
			err = r.saves.compare(one, has)
		}
		conn.Close()
	}
	_, ended := r.API().End(ctx, s.ID, "none")
	return errors.Join(err, ended)
}

// examineMoves compares the moves of defaults by saves with their histories.
func (r *run) examineMoves(ctx context.Context) (wrong []string, moves int, err error) {
	for i := range usersOfShorts {
		user := shortUser(i)
		history, err := r.history(ctx, user, 0)
		if err != nil {
			return nil, 0, err
		}
		in := map[string]int64{}
		for version, snapshot := range history {
			in[snapshot] = version
		}
		for version, snapshot := range r.saves.moves[user] {
			moves++
			if history[version] != snapshot {
				wrong = append(wrong, fmt.Sprintf("version %d of %s was confirmed with snapshot %s, but the history has %q", version, user, snapshot, history[version]))
			}
		}
		for _, snapshot := range r.saves.losers[user] {
			if in[snapshot] != 0 {
				wrong = append(wrong, fmt.Sprintf("version %d of %s has snapshot %s, which was refused", in[snapshot], user, snapshot))
			}
		}
	}
	r.saves.mu.Lock()
	defer r.saves.mu.Unlock()
	r.saves.moves, r.saves.losers = nil, nil
	return wrong, moves, nil
}
