package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/e2e/nodes"
	"github.com/stasisd/stasis/e2e/rig"
)

// moveDeadline is how long a drained node may take to move a session.
const moveDeadline = 20 * time.Second

// story is the session of the story, and its cluster.
type story struct {
	*nodes.Cluster
	api    *rig.Daemon
	script *rig.Node
}

// runStory logs in on the first node, kills it, continues on the second one, drains that, and
// continues on the third. The session has the same tabs and is still logged in.
func (s settings) runStory(ctx context.Context) (err error) {
	c, err := s.start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	site, err := demosite.Start(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, site.Close()) }()
	inner, err := url.Parse(site.URL)
	if err != nil {
		return err
	}
	outer, closeSite, err := serve(c.Address(), httputil.NewSingleHostReverseProxy(inner))
	if err != nil {
		return err
	}
	defer closeSite()
	script, err := rig.StartNode(s.clients, "cluster.mjs")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, script.Close()) }()
	t := &story{c, c.API(), script}
	return t.tabs(ctx, outer)
}

// tabs runs the steps of the story.
func (t *story) tabs(ctx context.Context, site string) error {
	if err := t.drains(ctx, true, "b", "c"); err != nil {
		return err
	}
	before, err := t.step(ctx, "a", map[string]string{"url": t.Front.URL, "key": rig.Key, "site": site, "user": demosite.User, "password": demosite.Password})
	if err != nil {
		return err
	}
	progress("logged in on node a, tabs: %q", before)

	if err := t.drains(ctx, false, "b"); err != nil {
		return err
	}
	if err := t.Node("a").Kill(); err != nil {
		return err
	}
	killed := time.Now()
	after, err := t.step(ctx, "b", struct{}{})
	if err != nil {
		return err
	}
	progress("node a was killed; after %.1f s the session continues on node b, tabs: %q", time.Since(killed).Seconds(), after)

	if err := errors.Join(t.drains(ctx, false, "c"), t.drains(ctx, true, "b")); err != nil {
		return err
	}
	moved := t.moved(ctx, "b")
	last, err := t.step(ctx, "c", map[string]bool{"moves": moved})
	if err != nil {
		return err
	}
	how := "the session was saved and resumed"
	if moved {
		how = "it has moved the session"
	}
	progress("node b drains, and %s; it continues on node c, tabs: %q", how, last)
	if !slices.Equal(before, after) || !slices.Equal(before, last) {
		return errors.New("the session has other tabs")
	}
	var none []string
	return t.script.Do(struct{}{}, &none)
}

// step runs a step of the script, after which the session lives on a node.
func (t *story) step(ctx context.Context, node string, order any) (tabs []string, err error) {
	if err := t.script.Do(order, &tabs); err != nil {
		return nil, err
	}
	if at := t.where(ctx); at != node {
		return nil, errors.New("the session lives on node " + at + ", want " + node)
	}
	return tabs, nil
}

// drains says whether nodes take no new sessions. A drain may also move those that live.
func (t *story) drains(ctx context.Context, drains bool, ids ...string) error {
	method := http.MethodDelete
	if drains {
		method = http.MethodPost
	}
	for _, id := range ids {
		if err := t.api.Call(ctx, method, "/v1/nodes/"+id+"/drain", nil, nil); err != nil {
			return err
		}
	}
	select { // until no node places sessions by an older list of nodes
	case <-time.After(listAge):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listAge is longer than a node keeps a list of nodes.
const listAge = 2 * time.Second

// moved waits until the session has left a node that drains. False: it stays.
func (t *story) moved(ctx context.Context, from string) bool {
	ctx, cancel := context.WithTimeout(ctx, moveDeadline)
	defer cancel()
	return wait(ctx, "", func() bool { at := t.where(ctx); return at != "" && at != from }) == nil
}

// where returns the node on which the session lives; "" if it does not live.
func (t *story) where(ctx context.Context) (id string) {
	conn, err := pgx.Connect(ctx, t.Database())
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close(ctx) }() // it has only read
	if err := conn.QueryRow(ctx, "SELECT node_id FROM sessions WHERE session_id = 'story' AND ended_at = 0").Scan(&id); err != nil {
		return ""
	}
	return id
}
