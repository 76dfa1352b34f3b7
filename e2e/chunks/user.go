package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// pageDeadline is how long a page may take to load.
const pageDeadline = 60 * time.Second

type obj = map[string]any

// user is one whose default environment goes from session to session.
type user struct {
	daemon *rig.Daemon
	site   string
}

// live restores the user's default, does what somebody does on the site in a
// session, saves, and fetches the snapshot.
func (u *user) live(ctx context.Context, session int, work bool) (saved, error) {
	create := obj{"user_id": "user"}
	if session > 0 {
		create["restore_default_environment_from_user_id"] = "user"
	}
	var s struct {
		ID  string `json:"session_id"`
		CDP string `json:"cdp_url"`
	}
	if err := u.daemon.Call(ctx, http.MethodPost, "/v1/sessions", create, &s); err != nil {
		return saved{}, err
	}
	if work {
		if err := u.work(ctx, s.CDP, session); err != nil {
			return saved{}, err
		}
	}
	var ended struct {
		Snapshot struct {
			ID    string
			Bytes int64 `json:"size_bytes"`
		}
	}
	if err := u.daemon.Call(ctx, http.MethodDelete, "/v1/sessions/"+s.ID+"?save_snapshot_mode=filesystem&save_as_default=true", nil, &ended); err != nil {
		return saved{}, err
	}
	var archive []byte
	if err := u.daemon.Call(ctx, http.MethodGet, "/v1/snapshots/"+ended.Snapshot.ID+"/archive", nil, &archive); err != nil {
		return saved{}, err
	}
	return unpacked(archive, ended.Snapshot.Bytes)
}

// work is the whole application in the first session, and in each later one a
// new version of a few scripts, some pictures that come and go, and some mail.
func (u *user) work(ctx context.Context, cdp string, session int) error {
	c, err := rig.Dial(ctx, cdp)
	if err != nil {
		return err
	}
	defer c.Close()
	t := tab{c, ""}
	if err := t.open(ctx, u.site+"/"); err != nil {
		return err
	}
	script := fmt.Sprintf(`(async () => {
		await navigator.serviceWorker.register("/worker.js");
		await navigator.serviceWorker.ready;
		for (let n = 0; n < %d; n++) await keep("/script/" + n, 0);
		for (let n = 0; n < %d; n++) await keep("/picture/" + n, 0);
		for (let n = 0; n < %d; n += 500) await keepRecords(n, 500, 0);
		return true;
	})()`, scripts, pictures, records)
	if session > 0 {
		script = fmt.Sprintf(`(async () => {
			const s = %d;
			for (let n = 0; n < 4; n++) await keep("/script/" + (7 * s + n), s);
			for (let n = 0; n < 4; n++) await keep("/picture/" + (1000 * s + n), 0);
			for (let n = 0; n < 2; n++) await (await caches.open("app")).delete("/picture/" + (2 * s + n));
			await keepRecords(200 * s, 60, s);
			await keepRecords(%d + 40 * s, 40, 0);
			localStorage.visits = s;
			return true;
		})()`, session, records)
	}
	return t.run(ctx, script)
}

// tab is a page of a session.
type tab struct {
	*rig.Conn
	session string
}

// open loads an address in the session's first page, and waits until its script
// has run.
func (t *tab) open(ctx context.Context, url string) error {
	var all struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	if err := t.Call(ctx, "", "Target.getTargets", nil, &all); err != nil {
		return err
	}
	for _, target := range all.TargetInfos {
		if target.Type != "page" {
			continue
		}
		var on struct{ SessionID string }
		if err := t.Call(ctx, "", "Target.attachToTarget", obj{"targetId": target.TargetID, "flatten": true}, &on); err != nil {
			return err
		}
		t.session = on.SessionID
		if err := t.Call(ctx, t.session, "Page.navigate", obj{"url": url}, nil); err != nil {
			return err
		}
		return t.until(ctx, `typeof keepRecords === "function" && document.readyState === "complete"`)
	}
	return errors.New("the browser has no page")
}

func (t *tab) until(ctx context.Context, is string) error {
	ctx, cancel := context.WithTimeout(ctx, pageDeadline)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// Between two documents there is none to ask.
		if t.run(ctx, is) == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("not in time: %s", is)
		}
	}
}

// run waits for an expression to become true.
func (t *tab) run(ctx context.Context, expression string) error {
	var got struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	err := t.Call(ctx, t.session, "Runtime.evaluate", obj{"expression": expression, "awaitPromise": true, "returnByValue": true}, &got)
	switch {
	case err != nil:
		return err
	case got.ExceptionDetails != nil:
		return errors.New(got.ExceptionDetails.Exception.Description)
	case got.Result.Value != true:
		return errors.New("it is not so")
	}
	return nil
}
