package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// pageDeadline is how long a page of the shop may take to appear.
const pageDeadline = 30 * time.Second

type obj map[string]any

// prepared is what the pictures show.
type prepared struct {
	live     string // the address of a live view
	snapshot string // of alice's login
	sessions int    // how many run
}

// prepare makes alice's login and some sessions.
func prepare(ctx context.Context, d *rig.Daemon, proxy string) (prepared, error) {
	login := obj{"session_id": "login-of-alice", "user_id": "alice", "start_url": shopHost + "/welcome", "proxy": obj{"server": proxy}}
	if _, err := show(ctx, d, login, "Your orders"); err != nil {
		return prepared{}, err
	}
	snapshot, err := d.End(ctx, "login-of-alice", "memory&save_as_default=true")
	if err != nil {
		return prepared{}, err
	}
	made := prepared{snapshot: snapshot}
	for _, x := range []struct {
		create obj
		title  string
	}{
		{obj{"session_id": "watch-offers", "user_id": "bob", "engine": "shell", "start_url": shopHost + "/offers", "proxy": obj{"server": proxy}}, "Offers"},
		{obj{"session_id": "read-orders", "restore_default_environment_from_user_id": "alice"}, "Your orders"},
		{obj{"session_id": "test-checkout", "restore_default_environment_from_user_id": "alice", "start_url": shopHost + "/offers"}, "Offers"},
	} {
		live, err := show(ctx, d, x.create, x.title)
		if err != nil {
			return prepared{}, err
		}
		if x.create["session_id"] == "read-orders" {
			made.live = live
		}
		made.sessions++
	}
	return made, nil
}

// show creates a session, waits until its page has a title, and returns its live view.
func show(ctx context.Context, d *rig.Daemon, create obj, title string) (live string, err error) {
	s, err := d.Create(ctx, create)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, pageDeadline)
	defer cancel()
	for {
		var shot struct{ Title string }
		if err := d.Call(ctx, http.MethodGet, "/v1/sessions/"+s.ID+"/screenshot", nil, &shot); err != nil {
			return "", fmt.Errorf("session %s does not show %q: %w", s.ID, title, err)
		}
		if shot.Title == title {
			return s.Control, nil
		}
	}
}
