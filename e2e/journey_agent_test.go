package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
)

// An agent of the real Strands SDK keeps its session in Stasis through the adapter of
// the docs. The SDK's file storage reads and writes the same files. Each conversation is
// a separate process, as after a restart.
func TestAgentKeepsItsSession(t *testing.T) {
	t.Parallel()
	adapter := compiled(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	folder := filepath.Join(d.Dir, "snapshots", "users", profiles.OwnerOf("default"), "sessions")
	overHTTP := func(session string) agent {
		return agent{Adapter: adapter, URL: d.URL, Key: daemon.Key, Session: session}
	}
	inFiles := func(session string) agent { return agent{Files: folder, Session: session} }
	owner := filepath.Dir(folder)
	inLocal := func(session, root, namespace string) agent {
		return agent{Local: &local{root, namespace}, Session: session}
	}

	// Two turns, and what is stored of them.
	first := overHTTP("default-session").does(t, turn{"said"}, turn{"manifest"}, turn{"invoke", "hello"}, turn{"invoke", "again"}, turn{"list"})
	want(t, first[0], []string{})
	want(t, first[3], "received 2")
	ids := into[[]string](t, first[4])
	if len(ids) != 2 || !slices.IsSorted(ids) {
		t.Fatalf("IDs %v", ids)
	}
	if m := into[map[string]string](t, first[1]); m["schemaVersion"] != "1.0" || m["updatedAt"] == "" {
		t.Errorf("the manifest of a new session: %v", m)
	}

	// The session is restored, also to an earlier snapshot, and continues from there.
	updated := map[string]string{"schemaVersion": "1.0", "updatedAt": "2026-11-22T04:34:40.908Z"}
	second := overHTTP("default-session").does(t, turn{"said"}, turn{"list", page{Limit: 1}}, turn{"list", page{StartAfter: ids[0]}},
		turn{"restore", ids[0]}, turn{"said"}, turn{"saveManifest", updated}, turn{"manifest"}, turn{"invoke", "from the first"}, turn{"list"},
		turn{"save", ids[0]}, turn{"restore", "01900000-0000-7000-8000-000000000001"}, turn{"list", page{StartAfter: "x"}})
	want(t, second[0], []string{"hello", "received 1", "again", "received 2"})
	want(t, second[1], ids[:1])
	want(t, second[2], ids[1:])
	want(t, second[3], true)
	want(t, second[4], []string{"hello", "received 1"})
	want(t, second[6], updated)
	ids = into[[]string](t, second[8])
	if len(ids) != 3 {
		t.Errorf("IDs %v", ids)
	}
	wantThrown(t, second[9], "snapshot_exists") // the first one is kept
	want(t, second[10], false)
	wantThrown(t, second[11], "start_after")

	// The SDK's file storage has the same session, and Stasis has what the file storage
	// writes. Files with names that Stasis does not use are ignored.
	third := inFiles("default-session").does(t, turn{"said"}, turn{"list"}, turn{"manifest"}, turn{"invoke", "from files"},
		turn{"save", "by-hand"}, turn{"list", page{StartAfter: ids[2]}})
	want(t, third[0], []string{"hello", "received 1", "from the first", "received 2"})
	want(t, third[1], ids)
	want(t, third[2], updated)
	written := slices.DeleteFunc(into[[]string](t, third[5]), func(id string) bool { return id == "by-hand" })
	fourth := overHTTP("default-session").does(t, turn{"said"}, turn{"list"}, turn{"restore", written[0]}, turn{"said"})
	said := []string{"hello", "received 1", "from the first", "received 2", "from files", "received 3"}
	want(t, fourth[0], said)
	want(t, fourth[1], append(ids, written...))
	want(t, fourth[3], said)

	// So does the SDK's storage of today, with the root and the namespace that the docs name.
	today := inLocal("default-session", owner, "sessions").does(t, turn{"said"}, turn{"list"}, turn{"invoke", "from today"})
	want(t, today[0], said)
	want(t, today[1], slices.Concat(ids, written, []string{"by-hand"}))
	wantMisplaced(t, d, inLocal("lost-1", folder, ""))

	// A browser's snapshots can be read, with the file storage only, and stay when the
	// agent deletes its session.
	saved := imports(t, d, "netscape", []byte("a.example\tFALSE\t/\tFALSE\t0\tsid\t42\n"), "user_id", "default").Snapshot
	files := inFiles(saved.SessionID).does(t, turn{"listBrowsers"}, turn{"loadBrowser", saved.ID}, turn{"loadBrowser"})
	want(t, files[0], []string{saved.ID})
	for _, loaded := range files[1:] {
		wantBrowser(t, loaded, saved.ID)
	}
	fifth := overHTTP(saved.SessionID).does(t, turn{"invoke", "I have a browser"}, turn{"loadBrowser"}, turn{"listBrowsers"}, turn{"forget"}, turn{"list"})
	want(t, fifth[0], "received 1")
	wantThrown(t, fifth[1], "scope_reserved")
	wantThrown(t, fifth[2], "scope_reserved")
	want[any](t, fifth[3], nil)
	want(t, fifth[4], []string{})
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+saved.ID+"/state", nil)

	sixth := overHTTP("default-session").does(t, turn{"said"}, turn{"save", random}, turn{"restore", random},
		turn{"forget"}, turn{"forget"}, turn{"list"}, turn{"restore"})
	want(t, sixth[0], append(said, "from today", "received 4"))
	want(t, sixth[2], true) // the SDK takes any ID; Stasis takes a UUID of any version
	want(t, sixth[5], []string{})
	want(t, sixth[6], false)

	for _, path := range []string{"..%2f..", "Upper", strings.Repeat("x", 300)} {
		a := d.Call(t, http.MethodGet, "/v1/sessions/"+path+"/scopes/agent/agent/manifest", nil)
		if a.Status != http.StatusUnprocessableEntity || a.Code() != "invalid_field" || !strings.Contains(string(a.Body), "session_id: ") {
			t.Errorf("session %.20s: %d %s", path, a.Status, a.Body)
		}
	}
}

// wantMisplaced has an agent store its session with a wrong root: the sessions folder itself,
// without a namespace. Stasis does not have the session. A check says where it is and what
// to do, there and at other wrong places. Done, Stasis has the session.
func wantMisplaced(t *testing.T, d *daemon.Daemon, lost agent) {
	t.Helper()
	const advice = "an agent's storage has another root than Stasis, which does not serve, copy or back up these documents; give it the root "
	lost.does(t, turn{"invoke", "without a namespace"})
	root := "users/" + profiles.OwnerOf("default")
	in := func(place string) string { return filepath.Join(d.Dir, "snapshots", filepath.FromSlash(root), place) }
	at := "sessions/session/lost-1"
	for _, x := range []struct{ folder, named, todo string }{
		{at, at, "move this folder to " + root + "/sessions/lost-1"},
		{"session/lost-1", "session", "move the folders in it to " + root + "/sessions"},
		{"lost-1", "lost-1", "move this folder to " + root + "/sessions/lost-1"},
	} {
		move(t, in(at), in(x.folder))
		at = x.folder
		code, said := stasis(t, nil, "store", "check", "--data-dir", d.Dir)
		if finding := root + "/" + x.named + ": " + advice + root + " and the namespace sessions, and " + x.todo + "\n"; code != 8 || !strings.Contains(said, finding) {
			t.Errorf("the check ended with %d, without %q:\n%s", code, finding, said)
		}
	}
	const latest = "/v1/sessions/lost-1/scopes/agent/agent/snapshots/latest"
	d.Must(t, http.StatusNotFound, http.MethodGet, latest, nil)
	move(t, in(at), in("sessions/lost-1"))
	if code, said := stasis(t, nil, "store", "check", "--data-dir", d.Dir); code != 0 || strings.Contains(said, "misplaced") {
		t.Errorf("the check ended with %d:\n%s", code, said)
	}
	d.Must(t, http.StatusOK, http.MethodGet, latest, nil)
}

// move moves a folder and removes the folder that it was in, if that is empty now.
func move(t *testing.T, from, to string) {
	t.Helper()
	if from == to {
		return
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.Rename(from, to)); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Dir(from)) // the sessions folder is not empty
}

// The SDK's file storage lists and loads snapshots of the format's first version.
func TestAgentsFileStorageReadsGoldenSnapshots(t *testing.T) {
	t.Parallel()
	const golden = "../snapshot/testdata/golden/v1/snapshots/users/ff8d9819fc0e12bf0d24892e45987e24/sessions"
	folder, err := filepath.Abs(golden)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{"019abc00-0001-7000-8000-000000000001", "019abc00-0002-7000-8000-000000000002"}
	results := agent{Files: folder, Session: "login-1"}.does(t, turn{"listBrowsers"}, turn{"loadBrowser", ids[0]}, turn{"loadBrowser"})
	want(t, results[0], ids)
	wantBrowser(t, results[1], ids[0])
	wantBrowser(t, results[2], ids[1])
}

// agent is the input of e2e/clients/strands.mjs.
type agent struct {
	Adapter string `json:"adapter,omitempty"`
	URL     string `json:"url,omitempty"`
	Key     string `json:"key,omitempty"`
	Files   string `json:"files,omitempty"`
	Local   *local `json:"local,omitempty"`
	Session string `json:"session"`
	Steps   []turn `json:"steps"`
}

// local says where the SDK's LocalFileStorage stores.
type local struct {
	Root      string `json:"root"`
	Namespace string `json:"namespace,omitempty"`
}

// random is a UUID that is not a UUIDv7.
const random = "3f2c1b0a-1111-4222-8333-444455556666"

// turn is a step's name and its argument, if any.
type turn []any

type page struct {
	Limit      int    `json:"limit,omitempty"`
	StartAfter string `json:"startAfter,omitempty"`
}

// does runs the steps in a new agent and returns their results.
func (a agent) does(t testing.TB, steps ...turn) []json.RawMessage {
	t.Helper()
	a.Steps = steps
	in, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	out := node(t, in, "clients/strands.mjs")
	answer := into[struct{ Results []json.RawMessage }](t, out)
	if len(answer.Results) != len(steps) {
		t.Fatalf("%d results of %d steps: %s", len(answer.Results), len(steps), out)
	}
	return answer.Results
}

// compiled compiles the adapter and the examples in the docs strictly, with the SDK's own
// types. It returns the path of the adapter's module.
func compiled(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	modules, err := filepath.Abs("clients/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := os.ReadFile("../docs/strands.ts")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/strands.md")
	if err != nil {
		t.Fatal(err)
	}
	var uses []string // the page's two examples
	for _, block := range strings.Split(string(page), "```ts\n")[1:] {
		use, _, _ := strings.Cut(block, "```\n")
		uses = append(uses, use)
	}
	if len(uses) != 2 {
		t.Fatalf("docs/strands.md has %d examples, want that of the adapter and that of the file storage", len(uses))
	}
	for name, body := range map[string]string{
		"strands.ts": string(adapter), "package.json": `{"type":"module"}`,
		"use.ts": "declare const session: { session_id: string }, process: { env: Record<string, string> };\n" + uses[0],
		"same.ts": "declare const dataDir: string, userId: string;\n" +
			strings.Replace(uses[1], "import { createHash } from 'node:crypto';\n", "declare const createHash: any;\n", 1), // there are no types of Node
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	node(t, nil, "clients/node_modules/typescript/bin/tsc", "--module", "nodenext", "--target", "es2022", "--strict",
		"--exactOptionalPropertyTypes", "--erasableSyntaxOnly", "--skipLibCheck", filepath.Join(dir, "use.ts"), filepath.Join(dir, "same.ts"))
	return filepath.Join(dir, "strands.js")
}

// node runs a script that must succeed and returns its output.
func node(t testing.TB, in []byte, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.Bytes())
	}
	return out
}

func into[T any](t testing.TB, raw []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

func want[T any](t testing.TB, raw json.RawMessage, expected T) {
	t.Helper()
	if diff := cmp.Diff(expected, into[T](t, raw)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func wantThrown(t testing.TB, raw json.RawMessage, words string) {
	t.Helper()
	if thrown := into[struct{ Error string }](t, raw); !strings.Contains(thrown.Error, words) {
		t.Errorf("it threw %q, want %q", thrown.Error, words)
	}
}

// wantBrowser checks that a document is a browser's snapshot of that ID.
func wantBrowser(t testing.TB, raw json.RawMessage, id string) {
	t.Helper()
	doc := into[struct {
		Scope         string
		SchemaVersion string
		Data          struct {
			SnapshotID string `json:"snapshot_id"`
		}
		AppData map[string]any
	}](t, raw)
	if doc.Scope != "agent" || doc.SchemaVersion != "1.0" || doc.Data.SnapshotID != id || doc.AppData == nil {
		t.Errorf("snapshot %s was loaded as %.300s", id, raw)
	}
}
