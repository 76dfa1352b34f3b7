package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// pageDeadline is how long a page may take to load.
const pageDeadline = 60 * time.Second

// session is a running session of Stasis.
type session struct {
	*rig.Session
	host     *host
	snapshot string // its snapshot, if it is parked
}

// end ends the session and returns its snapshot's ID if the mode makes one.
func (s *session) end(ctx context.Context, mode string, asDefault bool) (string, error) {
	if asDefault {
		mode += "&save_as_default=true"
	}
	return s.host.End(ctx, s.ID, mode)
}

// show loads an address in the session's first page, and waits until an expression is
// true there.
func (s *session) show(ctx context.Context, url, is string) error {
	t, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.visit(ctx, url, is)
}

// run runs a script in the session's first page and waits for it.
func (s *session) run(ctx context.Context, script string) error {
	t, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	var value any
	return t.evaluate(ctx, script, &value)
}

// tab is a page to which a plain CDP connection is attached.
type tab struct {
	*rig.Conn
	session string
}

// front attaches to the session's first page.
func (s *session) front(ctx context.Context) (*tab, error) { return front(ctx, s.CDP) }

func front(ctx context.Context, endpoint string) (*tab, error) {
	c, err := rig.Dial(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	t := &tab{Conn: c}
	if t.session, err = attachFirst(ctx, c); err != nil {
		c.Close()
		return nil, err
	}
	return t, nil
}

func attachFirst(ctx context.Context, c *rig.Conn) (string, error) {
	var all struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	if err := c.Call(ctx, "", "Target.getTargets", nil, &all); err != nil {
		return "", err
	}
	for _, t := range all.TargetInfos {
		if t.Type == "page" {
			var on struct{ SessionID string }
			err := c.Call(ctx, "", "Target.attachToTarget", obj{"targetId": t.TargetID, "flatten": true}, &on)
			return on.SessionID, err
		}
	}
	return "", errors.New("the browser has no page")
}

// evaluate evaluates an expression, awaits it, and decodes its value into out.
func (t *tab) evaluate(ctx context.Context, expression string, out any) error {
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	params := obj{"expression": expression, "awaitPromise": true, "returnByValue": true}
	if err := t.Call(ctx, t.session, "Runtime.evaluate", params, &got); err != nil {
		return err
	}
	if e := got.ExceptionDetails; e != nil {
		return errors.New(e.Exception.Description)
	}
	return json.Unmarshal(got.Result.Value, out)
}

// visit loads an address and waits until an expression is true there.
func (t *tab) visit(ctx context.Context, url, is string) error {
	var got struct{ ErrorText string }
	if err := t.Call(ctx, t.session, "Page.navigate", obj{"url": url}, &got); err != nil {
		return err
	}
	// Chrome reports this error if it is already loading the same address.
	if got.ErrorText != "" && got.ErrorText != "net::ERR_ABORTED" {
		return fmt.Errorf("%s: %s", url, got.ErrorText)
	}
	return t.await(ctx, is)
}

// await waits until an expression is true in the page.
func (t *tab) await(ctx context.Context, is string) error {
	err := poll(ctx, pageDeadline, func() (bool, error) {
		var yes bool
		// Between two documents there is no context to evaluate in.
		err := t.evaluate(ctx, "Boolean("+is+")", &yes)
		return err == nil && yes, nil
	})
	if err != nil {
		return fmt.Errorf("not true in time: %s", is)
	}
	return nil
}

// pollPause is the pause between two checks of poll.
const pollPause = 5 * time.Millisecond

// poll calls is until it returns true or an error, or the time is up.
func poll(ctx context.Context, deadline time.Duration, is func() (bool, error)) error {
	return pollEach(ctx, pollPause, deadline, is)
}

// pollEach is poll with another pause.
func pollEach(ctx context.Context, pause, deadline time.Duration, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if done, err := is(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
