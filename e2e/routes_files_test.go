package e2e

import (
	"bufio"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// wantedFile is a file or a folder of the machine that an attacker wants to read.
type wantedFile struct {
	name string // description
	path string // ends with a slash if it is a folder
	text string // text that proves that the attacker has read it
}

// url returns its file: URL.
func (l wantedFile) url() string { return "file://" + l.path }

// makeWantedFiles makes a file outside of the data directory that every user may read. The file
// and the listing of its folder are the wanted files.
func makeWantedFiles(t *testing.T) []wantedFile {
	t.Helper()
	dir := daemon.DataDir(t)
	l := []wantedFile{{"a readable file", filepath.Join(dir, "readable.txt"), rand.Text()}, addTo(t, dir)}
	if err := errors.Join(os.WriteFile(l[0].path, []byte(l[0].text), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return l
}

// secretsOf returns the files in an unprivileged daemon's data directory that only its
// user may read, and the listing of that directory.
func secretsOf(t *testing.T, d *daemon.Daemon) []wantedFile {
	t.Helper()
	path := filepath.Join(d.Dir, "api-key") // tests set the key in the environment
	if err := errors.Join(os.WriteFile(path, []byte("stasis_"+rand.Text()), 0o600), os.Chown(path, unprivileged, unprivileged)); err != nil {
		t.Fatal(err)
	}
	l := []wantedFile{addTo(t, d.Dir)}
	for _, name := range []string{"api-key", "identity", "archive-key"} {
		path := filepath.Join(d.Dir, name)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Fields(string(raw))
		l = append(l, wantedFile{name, path, lines[len(lines)-1]})
	}
	return l
}

// addTo adds a file to a folder. The folder's listing then contains its name.
func addTo(t *testing.T, dir string) wantedFile {
	t.Helper()
	name := rand.Text()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return wantedFile{"a listing", dir + "/", name}
}

// visited returns the profile of a Chrome that visited these addresses, as a zip.
func visited(t *testing.T, urls ...string) []byte {
	t.Helper()
	return zipOf(t, profileOf(t, func(w *wire, page string) {
		for _, url := range urls {
			w.open(page, url)
		}
	}), "profile")
}

// profileOf returns the user data directory of an unrestricted Chrome, after do and the
// end of that Chrome.
func profileOf(t *testing.T, act func(w *wire, page string)) string {
	t.Helper()
	dir := daemon.DataDir(t)
	if err := os.Chown(dir, unprivileged, unprivileged); err != nil {
		t.Fatal(err)
	}
	line := append(setpriv(unprivileged),
		"/usr/lib/chromium/chromium", "--ozone-platform=headless", "--ozone-override-screen-size=1280,900", "--no-first-run", "--password-store=basic",
		"--disable-background-networking", "--remote-debugging-port=0", "--user-data-dir="+dir+"/profile", "about:blank")
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(homeIn(dir), "PATH=/usr/bin:/bin")
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	go func() {
		defer close(address)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			if _, at, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
				address <- at
			}
		}
	}()
	at := <-address
	if at == "" {
		t.Fatal("Chrome did not start")
	}
	w := dial(t, at)
	page, _ := w.page()
	act(w, page)
	w.leave("Browser.close")
	if err := cmd.Wait(); err != nil {
		t.Logf("Chrome ended with %v", err)
	}
	return dir + "/profile"
}
