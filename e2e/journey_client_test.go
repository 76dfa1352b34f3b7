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

// The clients that drive a session.
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

// script is what a client is to do, and where.
type script struct {
	Endpoint string            `json:"endpoint"`
	Headers  map[string]string `json:"headers,omitempty"`
	Steps    []step            `json:"steps"`
	End      string            `json:"end,omitempty"` // "close": the client's own close of the browser
}

// stepDeadline bounds one step, scriptDeadline a whole script; both are far
// above what a loaded machine takes.
const (
	stepDeadline   = 30 * time.Second
	scriptDeadline = 90 * time.Second
)

// drive lets a client run steps in a session and gives their results.
func drive(t testing.TB, client, endpoint string, steps ...step) []json.RawMessage {
	t.Helper()
	return run(t, client, script{Endpoint: endpoint, Steps: steps})
}

// run lets a client run a script and gives its steps' results; the test fails
// with the first step that does.
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

// by runs the script in a client.
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
		return nil, fmt.Errorf("connecting: %s", out.Error)
	}
	return out.Results, nil
}

// text is a result that is a string.
func text(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("no string: %s", raw)
	}
	return s
}
