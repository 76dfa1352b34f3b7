package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// The client libraries that drive sessions.
const (
	puppeteer  = "puppeteer"
	playwright = "playwright"
	chromeDP   = "chromedp"
)

// step is one step of a client's script; e2e/clients/steps.mjs lists them all.
type step map[string]any

func visit(url string) step { return step{"do": "goto", "url": url} }
func fill(selector, value string) step {
	return step{"do": "fill", "selector": selector, "value": value}
}
func click(selector string) step      { return step{"do": "click", "selector": selector} }
func await(expression string) step    { return step{"do": "waitForFunction", "expression": expression} }
func evaluate(expression string) step { return step{"do": "evaluate", "expression": expression} }
func openTab(url string) step         { return step{"do": "newPage", "url": url} }
func toTab(contains string) step      { return step{"do": "usePage", "contains": contains} }

// script is the input of a client.
type script struct {
	Endpoint string            `json:"endpoint"`
	Headers  map[string]string `json:"headers,omitempty"`
	Steps    []step            `json:"steps"`
	End      string            `json:"end,omitempty"` // "close": the client itself closes the browser
}

// stepDeadline bounds one step, scriptDeadline a whole script. Both are far longer than
// they take on a loaded machine.
const (
	stepDeadline   = 2 * time.Minute
	scriptDeadline = 5 * time.Minute
	// backgroundDeadline bounds the start of a Chrome that is kept ready. It has a small share
	// of the processors, which other tests may use fully.
	backgroundDeadline = 10 * time.Minute
)

// drive runs steps in a session with a client, and returns their results.
func drive(t testing.TB, client, endpoint string, steps ...step) []json.RawMessage {
	t.Helper()
	return run(t, client, script{Endpoint: endpoint, Steps: steps})
}

// run runs a script with a client and returns the results of its steps. The test fails
// if a step fails.
func run(t testing.TB, client string, s script) []json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	results, err := s.by(ctx, client)
	if err != nil {
		t.Fatalf("%s: %v", client, err)
	}
	return results
}

// by runs the script with a client.
func (s script) by(ctx context.Context, client string) ([]json.RawMessage, error) {
	if client == chromeDP {
		return runChromedp(ctx, s)
	}
	in, err := json.Marshal(struct {
		script
		Timeout int64 `json:"timeout_ms"`
	}{s, stepDeadline.Milliseconds()})
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", "clients/"+client+".mjs")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &stdout, &stderr
	failed := cmd.Run()
	var out struct {
		Results []json.RawMessage
		Error   string
		Step    *int
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		return nil, fmt.Errorf("%w, %v\n%s%s", err, failed, stdout.Bytes(), stderr.Bytes())
	}
	if failed != nil && out.Step != nil {
		return out.Results, fmt.Errorf("%v: %s", s.Steps[*out.Step], out.Error)
	}
	if failed != nil {
		return nil, fmt.Errorf("cannot connect: %s", out.Error)
	}
	return out.Results, nil
}

// text returns a result that is a string.
func text(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("the result is not a string: %s", raw)
	}
	return s
}
