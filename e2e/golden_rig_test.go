package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stasisd/stasis/e2e/daemon"
)

// goldenFolder holds data directories that earlier versions of Stasis wrote. Each
// is named after the day it was written and never changes.
const goldenFolder = "testdata/golden"

// goldenAddress is where the site of the golden directories listens. It is fixed,
// because the saved profiles hold its origin.
const goldenAddress = "127.0.13.1:20131"

// forever is a retention that is longer than any test run.
const forever = 100 * 365 * 24 * time.Hour

// goldenRecord holds what the daemon chose when a golden directory was written:
// IDs and secrets. It is the file golden.json of the directory.
type goldenRecord struct {
	Wrote     string            `json:"wrote"`     // the version that wrote it
	Key       string            `json:"key"`       // secret of a key of user ada
	Revoked   string            `json:"revoked"`   // secret of a key that was revoked
	Extension string            `json:"extension"` // ID of the extension
	Snapshots map[string]string `json:"snapshots"` // session → ID of its newest snapshot
	First     string            `json:"first"`     // snapshot of version 1 of ada's default
	Imported  string            `json:"imported"`  // snapshot of bob's default
	Pending   []string          `json:"pending"`   // webhooks that were queued and not delivered
}

const goldenRecordFile = "golden.json"

// goldenSite is the site that the sessions of golden directories visited. Its
// /account answers 401 without the cookie login; its /hook receives webhooks.
type goldenSite struct {
	URL   string
	hooks *receiver
}

// startGolden serves the site until the test ends. It waits while another test
// process uses the address.
func startGolden(t *testing.T) goldenSite {
	t.Helper()
	var listener net.Listener
	daemon.Eventually(t, 5*time.Minute, goldenAddress+" is free", func() (free bool) {
		var err error
		listener, err = net.Listen("tcp4", goldenAddress)
		return err == nil
	})
	site := goldenSite{URL: "http://" + goldenAddress, hooks: &receiver{URL: "http://" + goldenAddress + "/hook"}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) { site.hooks.take(t, w, r) })
	mux.HandleFunc("GET /account", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("login"); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>golden</title>") // fails if the browser has disconnected
	})
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	return site
}

// goldenKeep is a script that stores a value in four kinds of storage. The cookie
// has no expiry, because Chrome limits every expiry to 400 days.
func goldenKeep(value string) string {
	return fmt.Sprintf(`(async (value) => {
		document.cookie = "login=" + value;
		localStorage.setItem("kept", value);
		sessionStorage.setItem("kept", value);
		const db = await new Promise((ok, no) => {
			const open = indexedDB.open("kept", 1);
			open.onupgradeneeded = () => open.result.createObjectStore("kept");
			open.onsuccess = () => ok(open.result);
			open.onerror = () => no(open.error);
		});
		await new Promise((ok, no) => {
			const write = db.transaction("kept", "readwrite", {durability: "strict"});
			write.objectStore("kept").put(value, "kept");
			write.oncomplete = ok;
			write.onabort = () => no(write.error);
		});
		db.close();
	})(%q)`, value)
}

// goldenKept is a script that reads the four values back.
const goldenKept = `(async () => {
	const db = await new Promise((ok) => {
		const open = indexedDB.open("kept");
		open.onupgradeneeded = () => open.transaction.abort();
		open.onsuccess = () => ok(open.result);
		open.onerror = () => ok(null);
	});
	const inDB = db && await new Promise((ok) => {
		const get = db.transaction("kept").objectStore("kept").get("kept");
		get.onsuccess = () => ok(get.result);
	});
	if (db) db.close();
	return document.cookie + " " + localStorage.getItem("kept") + " " + sessionStorage.getItem("kept") + " " + inDB;
})()`

// goldenFound is the result of goldenKept when nothing is lost.
func goldenFound(value string) string {
	return fmt.Sprintf("login=%[1]s %[1]s %[1]s %[1]s", value)
}

// goldenExtension is a zip of an extension that marks every page.
func goldenExtension(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, content := range map[string]string{
		"manifest.json": `{"manifest_version": 3, "name": "Golden", "version": "1.0",
			"content_scripts": [{"matches": ["<all_urls>"], "js": ["content.js"], "run_at": "document_start"}]}`,
		"content.js": `document.documentElement.dataset.golden = "marked"`,
	} {
		f, err := z.Create(name)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// goldenCaches are folders that Chrome creates again when they are missing. A
// golden directory leaves them out of a killed Chrome's profile to stay small.
var goldenCaches = []string{
	"Cache", "Code Cache", "GPUCache", "DawnGraphiteCache", "DawnWebGPUCache", "GrShaderCache", "GraphiteDawnCache", "ShaderCache",
	"Crashpad", "component_crx_cache", "extensions_crx_cache",
}

// packGolden writes a data directory to a .tar.zst, with the files' modification
// times: a rescue compares them with the time of the last reading.
func packGolden(t *testing.T, dir, to string) {
	t.Helper()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		if e.IsDir() && slices.Contains(goldenCaches, e.Name()) {
			return filepath.SkipDir
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() && !info.IsDir() { // no sockets, nor Chrome's lock
			return err
		}
		h, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		h.Name, err = filepath.Rel(dir, path)
		// The user ID of a Chrome differs between test runs.
		h.Format, h.AccessTime, h.ChangeTime, h.Uid, h.Gid, h.Uname, h.Gname = tar.FormatPAX, time.Time{}, time.Time{}, 0, 0, "", ""
		if err := errors.Join(err, archive.WriteHeader(h)); err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = archive.Write(raw)
		return err
	})
	if err := errors.Join(err, archive.Close(), z.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
}

// unpackGolden unpacks a golden directory. If the tests run as root, the run
// directories belong to uid, as they belonged to a Chrome's user.
func unpackGolden(t *testing.T, from string, uid int) (dir string) {
	t.Helper()
	dir = daemon.DataDir(t)
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	z, err := zstd.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var folders []*tar.Header
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
			folders = append(folders, h)
		} else {
			var raw []byte
			if raw, err = io.ReadAll(archive); err == nil {
				err = errors.Join(os.WriteFile(path, raw, 0o600), os.Chmod(path, h.FileInfo().Mode()), os.Chtimes(path, h.ModTime, h.ModTime))
			}
		}
		if os.Geteuid() == 0 && strings.HasPrefix(h.Name, "run/") {
			err = errors.Join(err, os.Chown(path, uid, uid))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range slices.Backward(folders) { // the files written into a folder changed its time
		path := filepath.Join(dir, h.Name)
		if err := errors.Join(os.Chmod(path, h.FileInfo().Mode()), os.Chtimes(path, h.ModTime, h.ModTime)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
