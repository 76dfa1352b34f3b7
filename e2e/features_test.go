package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// plainChrome is a Chrome that a user has started with a DevTools port, as a column of
// docs/clients.md. The other columns are the engines of sessions.
const plainChrome = "plain Chrome"

// TestClientFeatures tries what users of Playwright and Puppeteer do with a browser
// (clients/features), in sessions of both engines. A feature works, or it fails with the
// message that the tables of docs/clients.md name. If one of them works after all, the
// test fails too. make test tries in full Chrome what differs from a plain Chrome, in the
// shell what differs from both, and some other features. The long form tries all, also in a
// plain Chrome.
func TestClientFeatures(t *testing.T) {
	t.Parallel()
	tables := readFeatureTables(t)
	tls := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // clients refuse its certificate
	tls.StartTLS()
	t.Cleanup(tls.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	browsers := []string{browser.EngineChrome, browser.EngineShell}
	if storetest.Long() {
		browsers = append(browsers, plainChrome)
	}
	for _, in := range browsers {
		for _, client := range []string{playwright, puppeteer} {
			t.Run(client+" "+in, func(t *testing.T) {
				t.Parallel()
				endpoint := ""
				if in == plainChrome {
					endpoint = startPlainChrome(t)
				} else {
					endpoint = create(t, d, body{"engine": in}).CDP
				}
				results := tryFeatures(t, obj{"tool": client, "endpoint": endpoint, "tls": tls.URL, "part": partFor(in), "also": tables.differing(client, in), "timeouts": tables.timeouts(client, in)})
				tables.check(t, client, in, results)
			})
		}
	}
}

// partFor returns which features a browser tries besides those of the tables.
func partFor(in string) obj {
	switch {
	case storetest.Long():
		return obj{"of": 1, "take": []int{0}}
	case in == browser.EngineChrome:
		return obj{"of": 16, "take": []int{0}}
	default:
		return obj{"of": 16, "take": []int{4}}
	}
}

// featureResult is the outcome of one feature.
type featureResult struct {
	Name    string
	Failure string // "" if it works
	MS      int
}

// featureDeadline bounds one feature. run.mjs gives less to those that never answer, by design.
const featureDeadline = time.Minute

// tryFeatures runs e2e/clients/features/run.mjs.
func tryFeatures(t *testing.T, in obj) []featureResult {
	t.Helper()
	in["dir"], in["timeout_ms"] = t.TempDir(), featureDeadline.Milliseconds()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*scriptDeadline)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, "node", "clients/features/run.mjs")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(raw), &stdout, &stderr
	failed := cmd.Run()
	var out struct {
		Results []featureResult
		Error   string
	}
	if err := json.Unmarshal([]byte(stdout.String()), &out); err != nil || failed != nil {
		t.Fatalf("%v %v %s%s", failed, err, out.Error, stderr.String())
	}
	return out.Results
}

// featureTables are the rows of the tables of docs/clients.md: what a client sees, by
// client, feature and browser. Empty text means that the feature works.
type featureTables map[string]map[string]map[string]string

// readFeatureTables reads the rows "| client | feature | plain Chrome | full Chrome | shell | … |".
// A cell is "works" or the text of an error, as code. "the same" stands for the cell before.
func readFeatureTables(t *testing.T) featureTables {
	t.Helper()
	page, err := os.ReadFile("../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := featureTables{playwright: {}, puppeteer: {}}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		client := strings.ToLower(cells[0])
		if tables[client] == nil || len(cells) != 6 {
			continue
		}
		row := map[string]string{}
		before := ""
		for i, in := range []string{plainChrome, browser.EngineChrome, browser.EngineShell} {
			switch cell := cells[2+i]; {
			case cell == "works":
				before = ""
			case cell == "the same":
			case strings.HasPrefix(cell, "`"):
				before = strings.Trim(cell, "`")
			default:
				t.Fatalf("docs/clients.md: %q must be works, the same, or the text of an error as code", cell)
			}
			row[in] = before
		}
		tables[client][strings.Trim(cells[1], "`")] = row
	}
	return tables
}

// differing returns the features of a client that do other in full Chrome than in a plain
// Chrome, or other in the shell than in both. In the long form all are tried anyway.
func (f featureTables) differing(client, in string) []string {
	names := []string{}
	for name, row := range f[client] {
		if row[in] != row[plainChrome] && (in == browser.EngineChrome || row[in] != row[browser.EngineChrome]) {
			names = append(names, name)
		}
	}
	return names
}

// timeouts returns the features of a client that end with a timeout in a browser.
func (f featureTables) timeouts(client, in string) []string {
	names := []string{}
	for name, row := range f[client] {
		if row[in] == "Timeout" {
			names = append(names, name)
		}
	}
	return names
}

// check compares the results of one run with the tables.
func (f featureTables) check(t *testing.T, client, in string, results []featureResult) {
	t.Helper()
	for _, r := range results {
		want := f[client][r.Name][in]
		switch {
		case r.Failure == "" && want != "":
			t.Errorf("%s works, and docs/clients.md says that it fails with %q", r.Name, want)
		case r.Failure != "" && (want == "" || !strings.Contains(r.Failure, want)):
			t.Errorf("%s: want %q, after %d ms got: %s", r.Name, cmp.Or(want, "it works"), r.MS, r.Failure)
		}
	}
	if !storetest.Long() {
		return
	}
	for name := range f[client] {
		if !slices.ContainsFunc(results, func(r featureResult) bool { return r.Name == name }) {
			t.Errorf("docs/clients.md has a row for %s, which the script does not try", name)
		}
	}
}

// startPlainChrome starts Chrome as its users do, and returns its DevTools address.
func startPlainChrome(t *testing.T) string {
	t.Helper()
	binary, err := launch.Find("")
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t) // with port 0 Chrome says that it is automated
	address := net.JoinHostPort("127.0.0.1", port)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, binary, "--headless=new", "--no-sandbox", "--remote-debugging-port="+port, "--user-data-dir="+daemon.DataDir(t), "about:blank")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	daemon.Eventually(t, stepDeadline, "Chrome listens", func() bool {
		c, err := net.Dial("tcp4", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + address
}
