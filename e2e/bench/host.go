package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/e2e/apps/probe"
	"github.com/stasisd/stasis/e2e/rig"
)

// firstUID is the first user ID of Stasis's Chromes.
const firstUID = 1_800_000_000

// ownUser is the user of sessions that name none: the first key's user.
const ownUser = "default"

// loggedIn is true in the page that shows who is logged in.
const loggedIn = `document.querySelector("#me")?.textContent.startsWith("Logged in as ")`

// host is one Stasis daemon with a snapshot of the probe profile.
type host struct {
	*rig.Daemon
	site     *probe.Site
	snapshot string
	spares   int // how many it keeps ready
}

// host starts a daemon with further environment variables and flags of serve, and logs
// in once.
func (b *bench) host(ctx context.Context, env []string, args ...string) (*host, error) {
	b.hosts++
	h := &host{site: b.site, Daemon: &rig.Daemon{
		Binary: b.binary, Dir: filepath.Join(b.scratch, fmt.Sprint("d", b.hosts)), UIDs: firstUID + 1000*b.hosts,
		Args: append([]string{"--chrome", b.chrome, "--shell", b.shell}, args...), Env: append([]string{"STASIS_SHELL_SPARES=0"}, env...),
	}}
	if err := h.Start(ctx); err != nil {
		return h, err
	}
	var err error
	if h.snapshot, err = h.logIn(ctx); err != nil {
		return h, fmt.Errorf("cannot make the probe profile: %w", err)
	}
	if err := settle(ctx); err != nil {
		return h, err
	}
	h.spares = len(h.chromes().mains())
	return h, nil
}

// lightHost starts a daemon that keeps spares of the shell engine only.
func (b *bench) lightHost(ctx context.Context) (*host, error) {
	h, err := b.host(ctx, []string{"STASIS_SPARES=0", "STASIS_SHELL_SPARES=1"})
	if err != nil {
		return h, err
	}
	s, err := h.create(ctx, obj{"engine": shell}) // Stasis keeps spares of the shell only after a create has requested it
	if err == nil {
		_, err = s.end(ctx, "none", false)
	}
	if err == nil {
		h.spares = 1
		err = h.ready(ctx, 0)
	}
	return h, err
}

// ready waits until the daemon has all its spares and does no other work. others is the
// number of Chromes of running and parked sessions.
func (h *host) ready(ctx context.Context, others int) error {
	for deadline := time.Now().Add(quietDeadline); time.Now().Before(deadline); {
		if err := settle(ctx); err != nil {
			return err
		}
		if len(h.chromes().mains()) >= h.spares+others {
			return nil
		}
	}
	return fmt.Errorf("the daemon did not start its %d spares in time", h.spares)
}

// makeStandby makes the probe profile the user's default and turns on a standby for it.
func (h *host) makeStandby(ctx context.Context) error {
	if err := h.Call(ctx, http.MethodPut, "/v1/users/"+ownUser+"/default", obj{"snapshot_id": h.snapshot}, nil); err != nil {
		return err
	}
	return h.Call(ctx, http.MethodPatch, "/v1/users/"+ownUser, obj{"standby": 1}, nil)
}

func (h *host) stop() error { return h.Stop(syscall.SIGTERM) }

// me is the address of the page that shows who is logged in.
func (h *host) me() string { return h.site.URL + "/me" }

// logIn makes the probe profile: one remembered login and some data in every kind of
// storage. It returns the snapshot's ID.
func (h *host) logIn(ctx context.Context) (string, error) {
	s, err := h.create(ctx, obj{})
	if err != nil {
		return "", err
	}
	t, err := s.front(ctx)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if err := t.visit(ctx, h.site.URL+"/set?v=kept", `document.title === "set"`); err != nil {
		return "", err
	}
	if err := h.authenticate(ctx, t); err != nil {
		return "", err
	}
	return s.end(ctx, "filesystem", false)
}

// authenticate logs in with "remember me", and ends on the page that shows who is logged
// in.
func (h *host) authenticate(ctx context.Context, t *tab) error {
	if err := t.visit(ctx, h.site.URL+"/login", `document.querySelector("#submit")`); err != nil {
		return err
	}
	var status int
	if err := t.evaluate(ctx, fmt.Sprintf(`fetch("/login", {method: "POST", body: new URLSearchParams(
		{user: %q, password: %q, remember: "1"})}).then(r => r.status)`, demosite.User, demosite.Password), &status); err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("the login got status %d", status)
	}
	return t.visit(ctx, h.me(), loggedIn)
}

// create creates a session.
func (h *host) create(ctx context.Context, fields obj) (*session, error) {
	s, err := h.Create(ctx, fields)
	return &session{host: h, Session: s}, err
}

// atMe creates a session of the probe profile that shows the login's page.
func (h *host) atMe(ctx context.Context, fields obj) (*session, error) {
	fields["restore_from_environment_id"] = h.snapshot
	s, err := h.create(ctx, fields)
	if err != nil {
		return nil, err
	}
	return s, s.show(ctx, h.me(), loggedIn)
}

// forget deletes a snapshot together with its parked Chrome.
func (h *host) forget(ctx context.Context, snapshot string) error {
	return h.Call(ctx, http.MethodDelete, "/v1/snapshots/"+snapshot, nil, nil)
}

// order adds the daemon's address and key to an order for bench.mjs.
func (h *host) order(of obj) obj {
	of["base"], of["key"] = h.URL, rig.Key
	return of
}

// chromes is the tree of the processes that the daemon has started.
func (h *host) chromes() tree { return below(h.PID(), false) }
