//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is also the binary under test: under the name stasis it runs main. With
// the argument of a child it is the daemon's child, under any name.
func TestMain(m *testing.M) {
	if code, done := childMain(os.Args[1:]); done {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){"stasis": main, "terminal": terminal})
}

// The scripts run every verb as a user types it and check its output and exit code. No
// script needs a Chrome.
func TestScripts(t *testing.T) {
	daemons := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/extensions"):
			extensionsOf(w, r)
		case strings.HasPrefix(r.URL.Path, "/v1/snapshots"):
			snapshotsOf(w, r)
		case r.URL.Path == "/v1/prune":
			pruneOf(w, r)
		case r.URL.Path == "/v1/users/ada" || r.URL.Path == "/v1/keys/key-1":
			quotasOfAda(w, r)
		case r.URL.Path == "/v1/sessions":
			_, _ = fmt.Fprint(w, "[]")
		case r.URL.Path == "/v1/keys":
			_, _ = fmt.Fprint(w, `{"keys":[{"id":"key-1","user_id":"ada"},{"id":"key-2","user_id":"default","all_users":true}]}`)
		case strings.HasSuffix(r.URL.Path, "/default"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"code":"default_not_found","message":"none"}`)
		case r.URL.Path != "/readyz":
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(daemons.Close)
	var scripts atomic.Int64
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("DAEMON", daemons.URL)
			env.Setenv("TAKEN", daemons.Listener.Addr().String())
			env.Setenv("STASIS_CONFIG", "") // not this machine's
			env.Setenv("NETWORK", networkNamespace())
			// Scripts run at once, beside other tests with daemons: each has its own user IDs.
			env.Setenv("STASIS_UID_BASE", fmt.Sprint(3_000_000_000+os.Getpid()%10_000*100_000+int(scripts.Add(1))*1000))
			// The path of a data directory must be short because of Chrome's socket.
			short, err := os.MkdirTemp("", "st-")
			env.Setenv("SHORT", short)
			env.Defer(func() { _ = os.RemoveAll(short) })
			// As root, a script's Chrome has its own user, who must be able to reach these
			// folders.
			for _, dir := range []string{short, env.WorkDir, filepath.Dir(env.WorkDir)} {
				err = errors.Join(err, os.Chmod(dir, 0o711))
			}
			return errors.Join(err, sealedIn(env.WorkDir))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "keep-snapshots": keepSnapshots},
	})
}

// extensionsOf plays a daemon's routes for extensions. The ID of an upload is the list of
// names in its zip, or the upload itself if it is no zip.
func extensionsOf(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer the-key-of-the-script" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client gave up
		}
		id := strings.TrimSpace(string(body))
		if z, err := zip.NewReader(bytes.NewReader(body), int64(len(body))); err == nil {
			var names []string
			for _, f := range z.File {
				names = append(names, f.Name)
			}
			slices.Sort(names)
			id = strings.Join(names, ",")
		}
		_, _ = fmt.Fprintf(w, `{"id":%q}`, id)
	case http.MethodGet:
		_, _ = fmt.Fprint(w, `{"extensions":[{"id":"aaaabbbbccccddddeeeeffffgggghhhh","user_id":"alice","version":"1.0","name":"Night","size_bytes":2048}]}`)
	case http.MethodDelete:
		if r.URL.Query().Get("force") != "true" {
			w.WriteHeader(http.StatusConflict)
			_, _ = fmt.Fprint(w, `{"code":"extension_in_use","message":"a snapshot has it"}`)
		}
	}
}

// snapshotsOf plays a daemon's routes for snapshots: two of alice's, on two pages, and none
// of other users.
func snapshotsOf(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer the-key-of-the-script" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"code":"unauthorized","message":"unknown key"}`)
		return
	}
	if id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1/snapshots/"), "/verify"); ok && r.Method == http.MethodPost {
		switch id {
		case "snap-1":
			_, _ = fmt.Fprint(w, `{"snapshot_id":"snap-1","ok":true,"problems":[]}`)
		case "snap-2":
			_, _ = fmt.Fprint(w, `{"snapshot_id":"snap-2","ok":false,"problems":[{"code":"archive_damaged","message":"a bit has flipped"}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"code":"snapshot_not_found","message":"no such snapshot"}`)
		}
		return
	}
	if r.Method == http.MethodPost || strings.HasSuffix(r.URL.Path, "/archive") {
		portableOf(w, r)
		return
	}
	const one = `{"snapshots":[{"id":%q,"session_id":"s-1","user_id":"alice","mode":"memory","label":%q,"created_at":"2026-11-22T04:00:00Z","size_bytes":45000}],"next_token":%s}`
	switch q := r.URL.Query(); {
	case q.Has("user_id") && q.Get("user_id") != "alice":
		_, _ = fmt.Fprint(w, `{"snapshots":[],"next_token":null}`)
	case q.Get("start_after") == "snap-2":
		_, _ = fmt.Fprintf(w, one, "snap-1", "", "null")
	default:
		_, _ = fmt.Fprintf(w, one, "snap-2", "before the\tmove", `"snap-2"`)
	}
}

// pruneOf plays a daemon's route for prunes. Its answer contains the request.
func pruneOf(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/json" || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	const one = `{"id":%q,"user_id":%q,"created_at":"2026-11-22T04:00:00Z","size_bytes":45000%s}`
	kept := "null"
	if strings.Contains(string(body), `"dry_run":true`) {
		kept = "[" + fmt.Sprintf(one, "snap-2", "alice", `,"reasons":["default","newest"]`) + "]"
	}
	_, _ = fmt.Fprintf(w, `{"removed_count":1,"freed_bytes":45000,"removed":[%s],"kept_count":1,"kept_by":{"newest":1,"default":1},"kept":%s}`,
		fmt.Sprintf(one, "snap-1", body, ""), kept)
}

// quotasOfAda plays a daemon's routes for quotas, of a user and a key. The user has one of its
// own, and one is the daemon's. A change must remove one quota and no more.
func quotasOfAda(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPatch {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.TrimSpace(string(body)) != `{"quotas":{"bytes":null}}` {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"code":"invalid_field","message":%q}`, body)
			return
		}
	}
	_, _ = fmt.Fprint(w, `{"quotas":{"sessions":8,"bytes":null},"use":{"sessions":{"used":1,"limit":8},"bytes":{"used":2,"limit":9000},"sockets":{"used":0,"limit":null}}}`)
}

// exits runs a command and compares its exit code with the expected one: exits 2 stasis
// serve --no-such-flag.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
