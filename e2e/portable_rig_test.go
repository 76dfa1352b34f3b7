package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/e2e/apps/weblog"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// clubSite has a login in a session cookie that scripts cannot read. A page stores a
// token in localStorage and a record in IndexedDB.
type clubSite struct {
	URL string
	Log *weblog.Log
}

const (
	clubPage = `<!doctype html><title>club</title><script>
const opened = new Promise((done, failed) => {
  const r = indexedDB.open("club", 3);
  r.onupgradeneeded = () => r.result.createObjectStore("members", {keyPath: "id"}).createIndex("by name", "name", {unique: true});
  r.onsuccess = () => done(r.result);
  r.onerror = () => failed(r.error);
});
async function show() {
  const db = await opened;
  const got = await new Promise(done => { const r = db.transaction("members").objectStore("members").index("by name").get("ada"); r.onsuccess = () => done(r.result); });
  const who = await (await fetch("/who")).text();
  const record = got ? got.since.getUTCFullYear() + " " + got.tags.get("role") : "none";
  window.member = [who, localStorage.getItem("token") ?? "none", record, db.version].join(", ");
}
async function join() {
  localStorage.setItem("token", "t-1");
  const t = (await opened).transaction("members", "readwrite");
  t.objectStore("members").put({id: 1, name: "ada", since: new Date(Date.UTC(1843, 0)), tags: new Map([["role", "first"]])});
  await new Promise(done => { t.oncomplete = done; });
}
(location.pathname === "/join" ? join().then(show) : show());
</script>`
	// memberText is what the page shows to a member; memberWithoutDatabases, to one whose
	// databases are lost.
	memberText             = "ada, t-1, 1843 first, 3"
	memberWithoutDatabases = "ada, t-1, none, 3"
)

func club(t testing.TB) *clubSite {
	t.Helper()
	s := &clubSite{Log: weblog.New(time.Now)}
	server := httptest.NewServer(s.Log.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/join":
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: "c-42", Path: "/", HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "kept", Value: "yes", Path: "/", MaxAge: 3600})
		case "/who":
			who := "nobody"
			if c, err := r.Cookie("sid"); err == nil && c.Value == "c-42" {
				if kept, err := r.Cookie("kept"); err == nil && kept.Value == "yes" {
					who = "ada"
				}
			}
			_, _ = io.WriteString(w, who)
			return
		case "/favicon.ico":
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, clubPage)
	})))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// clientTool is the input and the output of e2e/clients/portable.mjs.
type clientTool struct {
	Tool       string          `json:"tool"`
	Chrome     string          `json:"chrome"`
	URL        string          `json:"url"`
	Expression string          `json:"expression"`
	Dir        string          `json:"dir,omitempty"`
	State      json.RawMessage `json:"state,omitempty"`
}

type kept struct {
	Value string          `json:"value"`
	State json.RawMessage `json:"state"`
}

func (l clientTool) run(t testing.TB) kept {
	t.Helper()
	var err error
	if l.Chrome, err = launch.Find(""); err != nil {
		t.Fatal(err)
	}
	if l.Dir == "" {
		l.Chrome = "/usr/lib/chromium/chromium-headless-shell" // what both tools use by default, and faster
	}
	l.Expression = "window.member"
	in, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", "clients/portable.mjs")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", l.Tool, err, stderr.Bytes())
	}
	var k kept
	if err := json.Unmarshal(out, &k); err != nil {
		t.Fatalf("%s: %v\n%s", l.Tool, err, out)
	}
	return k
}

// curl runs the program curl.
func curl(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepDeadline)
	defer cancel()
	out, err := exec.CommandContext(ctx, "curl", append([]string{"--silent", "--show-error", "--fail"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v\n%s", err, out)
	}
	return string(out)
}

// imports makes a snapshot from a file.
func imports(t testing.TB, d *daemon.Daemon, format string, file []byte, more ...string) importer.Answer {
	t.Helper()
	query := url.Values{"format": {format}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	answer := d.Send(t, daemon.Key, http.MethodPost, "/v1/snapshots?"+query.Encode(), bytes.NewReader(file),
		http.Header{"Content-Type": {"application/octet-stream"}})
	if answer.Status != http.StatusCreated {
		t.Fatalf("import of %s: %d %s", format, answer.Status, answer.Body)
	}
	var a importer.Answer
	answer.Into(t, &a)
	return a
}

// exports returns a snapshot's state in a format, and what the format does not carry.
func exports(t testing.TB, d *daemon.Daemon, id, query string) ([]byte, []library.NotExported) {
	t.Helper()
	a := d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+id+"/state?"+query, nil)
	var lost []library.NotExported
	if err := json.Unmarshal([]byte(a.Header.Get("X-Stasis-Not-Carried")), &lost); err != nil {
		t.Fatal(err)
	}
	return a.Body, lost
}

// lostOf returns how many items of a component a format does not carry.
func lostOf(lost []library.NotExported, component string) int {
	n := 0
	for _, l := range lost {
		if l.Component == component {
			n += l.Count
		}
	}
	return n
}

// member restores a snapshot in an engine and returns what the site's page shows there.
func member(t testing.TB, d *daemon.Daemon, s *clubSite, id, engine string) (string, restore.Report) {
	t.Helper()
	c := create(t, d, body{"restore_from_environment_id": id, "engine": engine})
	results := drive(t, chromeDP, c.CDP, visit(s.URL+"/"), await("window.member"))
	end(t, d, c.ID, "")
	return text(t, results[1]), *c.Restored
}

// component returns a report's line.
func component(lines []state.Component, name, origin string) state.Component {
	for _, line := range lines {
		if line.Name == name && line.Origin == origin {
			return line
		}
	}
	return state.Component{}
}

// zipOf packs a folder as a file manager does: with the folder's name in front, and with
// links as links.
func zipOf(t testing.TB, dir, top string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type()&(fs.ModeSocket|fs.ModeNamedPipe) != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h, err := zip.FileInfoHeader(info)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h.Name, h.Method = top+"/"+filepath.ToSlash(rel), zip.Deflate
		entry, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		content := []byte(nil)
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			content = []byte(target)
		} else if content, err = os.ReadFile(path); err != nil {
			return err
		}
		_, err = entry.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// restamped returns an archive whose state document names another version of Chrome.
func restamped(t testing.TB, archive []byte, version string) []byte {
	t.Helper()
	return rewritten(t, archive, func(doc *state.Document) { doc.Chrome.Version = version })
}

// rewritten returns an archive with a changed state document.
func rewritten(t testing.TB, archive []byte, change func(*state.Document)) []byte {
	t.Helper()
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	plain, err := decoder.DecodeAll(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, r := tar.NewWriter(&out), tar.NewReader(bytes.NewReader(plain))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == state.FileName {
			var doc state.Document
			if err := json.Unmarshal(content, &doc); err != nil {
				t.Fatal(err)
			}
			change(&doc)
			if content, err = json.Marshal(doc); err != nil {
				t.Fatal(err)
			}
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// zipFile returns a zip with one file.
func zipFile(t testing.TB, name string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	if _, err := w.Create(name); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
