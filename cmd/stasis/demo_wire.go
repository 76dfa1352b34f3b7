//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
)

// demoSession is the part of a session's answer that the demo reads.
type demoSession struct {
	ID       string          `json:"session_id"`
	UserID   string          `json:"user_id"`
	CDPURL   string          `json:"cdp_url"`
	Restored *restore.Report `json:"restored"`
}

// create creates a session. If the demo is interrupted, its session needs no rescue.
func (d *demoDaemon) create(ctx context.Context, fields map[string]any) (s demoSession, err error) {
	fields["agent_name"], fields["on_timeout"] = "agi-0", "discard"
	body, err := json.Marshal(fields)
	if err != nil {
		return s, err
	}
	return s, d.call(ctx, http.MethodPost, "/v1/sessions", body, &s)
}

// endSession ends a session with the given query.
func (d *demoDaemon) endSession(ctx context.Context, id string, how url.Values) (a save.EndAnswer, err error) {
	return a, d.call(ctx, http.MethodDelete, "/v1/sessions/"+id+"?"+how.Encode(), nil, &a)
}

// verifyPatience bounds how long the demo waits for a verification. Usually it takes a
// second. It waits for pages that load slowly, and on a busy machine.
const verifyPatience = time.Minute

// verifyPause is the time between two queries for it.
const verifyPause = 100 * time.Millisecond

// report returns a session's restore report. It waits for the result of the verification,
// which is known only shortly after the create, for verifyPatience.
func (d *demoDaemon) report(ctx context.Context, id string) (r restore.Report, err error) {
	deadline := time.NewTimer(verifyPatience)
	defer deadline.Stop()
	again := time.NewTicker(verifyPause)
	defer again.Stop()
	for {
		err := d.call(ctx, http.MethodGet, "/v1/sessions/"+id+"/restore-report", nil, &r)
		if err != nil || r.Verification != restore.VerificationPending {
			return r, err
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return r, nil
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// call makes one request and decodes its answer into answer.
func (d *demoDaemon) call(ctx context.Context, method, path string, body []byte, answer any) (err error) {
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+d.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // decoded completely, or not needed
	if res.StatusCode >= http.StatusBadRequest {
		var refused struct{ Code, Message string }
		_ = json.NewDecoder(res.Body).Decode(&refused) // without a body the status is the message
		return fmt.Errorf("%s %s: %s %s: %s", method, path, res.Status, refused.Code, refused.Message)
	}
	return json.NewDecoder(res.Body).Decode(answer)
}
