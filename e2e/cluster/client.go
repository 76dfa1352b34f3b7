package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/stasisd/stasis/e2e/rig"
)

// serviceRestart is the code with which clients are closed that are to connect again at the same
// address. It is in the registry of RFC 6455, 11.7.
const serviceRestart = 1012

// clients counts what clients are answered while nodes are upgraded.
type clients struct {
	*run

	mu        sync.Mutex
	calls     int      // of the API
	commands  int      // of CDP
	restarted int      // connections that were closed with 1012
	failed    []string // calls, commands and connections that failed
}

// announced are the errors that a caller can expect without an upgrade.
var announced = map[string]bool{
	"version_conflict":  true, // another caller has moved the default
	"default_not_found": true, // nobody has moved it yet
}

// call calls the API through the load balancer. An error that is not announced counts.
func (c *clients) call(ctx context.Context, method, path string, body, out any) error {
	err := c.API().Call(ctx, method, path, body, out)
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	var refused *rig.Refused
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) && (!errors.As(err, &refused) || !announced[refused.Code]) {
		c.fail("%s %s: %v", method, path, err)
	}
	return err
}

func (c *clients) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
	progress(format, args...)
}

// guest is the client of one session. It connects again at the same address when it is closed
// with 1012.
type guest struct {
	*clients
	id, cdp string
	conn    *rig.Conn // nil: it is not connected
	page    string
}

// open creates the session.
func (g *guest) open(ctx context.Context, body any) error {
	var made struct {
		ID  string `json:"session_id"`
		CDP string `json:"cdp_url"`
	}
	if err := g.call(ctx, http.MethodPost, "/v1/sessions", body, &made); err != nil {
		return err
	}
	g.id, g.cdp = made.ID, made.CDP
	return nil
}

// do has use send commands to the session's page. After the connection was closed with 1012, use
// is called again: what it does may then be done twice.
func (g *guest) do(ctx context.Context, use func(ctx context.Context, conn *rig.Conn, page string) error) error {
	for {
		err := g.try(ctx, use)
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// try is do without a repetition. After a failure that it has counted it returns nil, so that do
// does not repeat it.
func (g *guest) try(ctx context.Context, use func(ctx context.Context, conn *rig.Conn, page string) error) error {
	if g.conn == nil {
		conn, err := rig.Dial(ctx, g.cdp)
		if err != nil {
			g.failUnlessEnded(ctx, "%s cannot connect: %v", g.id, err)
			return nil
		}
		g.conn, g.page = conn, ""
	}
	var err error
	if g.page == "" {
		g.page, err = pageOf(ctx, g.conn)
	}
	if err == nil {
		err = use(ctx, g.conn, g.page)
	}
	g.mu.Lock()
	g.commands++
	g.mu.Unlock()
	if err == nil {
		return nil
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), visitDeadline)
	defer cancel()
	code := g.conn.CloseCode(within)
	g.close()
	if code == serviceRestart {
		g.mu.Lock()
		g.restarted++
		g.mu.Unlock()
		return err
	}
	g.failUnlessEnded(ctx, "a command of %s fails, its connection is closed with %d: %v", g.id, code, err)
	return nil
}

// failUnlessEnded counts a failure, unless the run has ended.
func (g *guest) failUnlessEnded(ctx context.Context, format string, args ...any) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		g.fail(format, args...)
	}
}

func (g *guest) close() {
	if g.conn != nil {
		g.conn.Close()
		g.conn = nil
	}
}
