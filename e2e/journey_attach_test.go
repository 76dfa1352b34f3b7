package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// The DevTools port of stasis attach serves clients that need a host and a port: Selenium,
// Playwright, Puppeteer and an MCP server. Web pages may not use it. It ends with its
// session.
func attach(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{})
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, daemon.Binary(t), "attach", s.ID, "--port", "0")
	cmd.Env = append(os.Environ(), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	address := strings.TrimSpace(strings.TrimPrefix(line, "DevTools listening on "))

	const form = `data:text/html,<input id=name><button onclick="document.title=document.getElementById('name').value">go</button>`
	selenium, err := exec.CommandContext(ctx, "/usr/bin/python3", "clients/selenium-client.py", strings.TrimPrefix(address, "http://"), form).CombinedOutput() //nolint:gosec // the test's own client
	if err != nil || string(selenium) != "ada\n2\n" {
		t.Errorf("Selenium: %s, %v", selenium, err)
	}
	for _, client := range []string{playwright, puppeteer} {
		if got := text(t, run(t, client, script{Endpoint: address, Steps: []step{evaluate(`document.title`)}})[0]); got != "ada" {
			t.Errorf("%s reads the title %q", client, got)
		}
	}
	snapshot, err := exec.CommandContext(ctx, "node", "clients/mcp.mjs", address).CombinedOutput() //nolint:gosec // as above
	if err != nil || !strings.Contains(string(snapshot), `button "go"`) {
		t.Errorf("the MCP server: %s, %v", snapshot, err)
	}

	ask := func(method, path string, status int) (answer []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err = io.ReadAll(res.Body)
		if _ = res.Body.Close(); err != nil || res.StatusCode != status {
			t.Errorf("%s %s = %d %s, %v, want %d", method, path, res.StatusCode, answer, err, status)
		}
		return answer
	}
	var made struct{ ID string }
	if err := json.Unmarshal(ask(http.MethodPut, "/json/new?about:blank", http.StatusOK), &made); err != nil || made.ID == "" {
		t.Errorf("a new tab: %+v, %v", made, err)
	}
	for _, path := range []string{"/json/activate/", "/json/close/"} {
		ask(http.MethodGet, path+made.ID, http.StatusOK)
		ask(http.MethodGet, path+"none", http.StatusNotFound)
	}
	end(t, d, s.ID, "")
	if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "the session has ended: it is completed") {
		t.Errorf("the command said %q at the end of its session, and ended with %v", said.String(), err)
	}
	again, err := exec.CommandContext(ctx, daemon.Binary(t), "attach", s.ID, "--port", "0", "--url", d.URL, "--key", daemon.Key).CombinedOutput()
	if err == nil || !strings.Contains(string(again), "the session is completed") {
		t.Errorf("an ended session: %s, %v", again, err)
	}
}
