package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

const (
	// soon bounds a call that must not take minutes. A loaded machine takes seconds.
	soon = 45 * time.Second
	// bodyMemory is the limit of a daemon's memory, in bytes, after any JSON body.
	bodyMemory = 512 << 20
)

// within makes a call and fails the test if it takes longer than soon.
func within(t *testing.T, d *daemon.Daemon, method, path, media string, in io.Reader) daemon.Answer {
	t.Helper()
	begun := time.Now()
	a := d.Send(t, daemon.Key, method, path, in, http.Header{"Content-Type": {media}})
	if took := time.Since(begun); took > soon {
		t.Errorf("%s %s took %s; want less than soon", method, path, took)
	}
	return a
}

// forgetPeak resets a daemon's peak memory to its present memory.
func forgetPeak(t testing.TB, d *daemon.Daemon) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", d.PID()), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// TestAttackBodies sends JSON bodies that cost more than their length to every route
// that reads one. Each is refused with a short error. In make test each route gets two of
// the four kinds, in turn.
func TestAttackBodies(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true}))
	const most = 1<<20 - 100
	bodies := []struct{ name, body string }{
		{"long name", `{"` + strings.Repeat("n", most/2) + `":[` + strings.Repeat("1,", most/4) + `1]}`},
		{"many names", `{` + manyNames(most) + `"goal":[]}`},
		{"deep", strings.Repeat(`{"a":`, most/5)},
		{"twice", `{"` + strings.Repeat("n", most/2) + `":1,"` + strings.Repeat("n", most/2-10) + `":1}`},
	}
	for r, route := range []struct{ method, path string }{
		{"POST", "/v1/sessions"}, {"PATCH", "/v1/users/ada"}, {"POST", "/v1/memory/v2/session"}, {"POST", "/v1/keys"},
	} {
		for b, c := range bodies {
			if !storetest.Long() && (r/2+b)%2 != 0 {
				continue
			}
			a := within(t, d, route.method, route.path, "application/json", strings.NewReader(c.body))
			if a.Status < 400 || a.Status >= 500 || len(a.Body) > 2000 {
				t.Errorf("%s %s, %s: %d and %d bytes: %.300s", route.method, route.path, c.name, a.Status, len(a.Body), a.Body)
			}
		}
	}
	if peak := peakMemory(t, d.PID()); peak > bodyMemory {
		t.Errorf("the daemon took %d MB", peak>>20)
	}
}

// manyNames returns members of a JSON object, of a size in bytes.
func manyNames(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size-40; n++ {
		fmt.Fprintf(&b, `"n%d":1,`, n)
	}
	return b.String()
}

// TestAttackNames sends archives whose names cost more than their bytes. Each is
// refused in every archive format, and leaves nothing. In make test each format of the
// API gets each kind of names in one archive format, in turn.
func TestAttackNames(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Unraced: true}))
	folders := strings.Repeat(strings.Repeat("n", 200)+"/", 18)
	packers := []func(testing.TB, io.Writer, func(func(string) bool)){packZstd, packGzip, packZip}
	for n, c := range []struct {
		name  string
		files func(yield func(string) bool)
	}{
		{"deep folders", each(200, "Default/%d/"+strings.Repeat("a/", 2000)+"f")},
		{"implied folders", each(16_000, "Default/%d/"+strings.Repeat("a/", 25)+"f")},
		{"long names", each(10_000, "Default/"+folders+"%d")},
		{"long names that are left out", each(10_000, "Other/"+folders+"%d")},
	} {
		for p, pack := range packers {
			var body bytes.Buffer
			for f, format := range []string{"datadir", "stasis"} {
				if !storetest.Long() && p != (n+f)%len(packers) {
					continue
				}
				if body.Len() == 0 {
					pack(t, &body, c.files)
				}
				forgetPeak(t, d)
				a := within(t, d, "POST", "/v1/snapshots?format="+format, "application/octet-stream", bytes.NewReader(body.Bytes()))
				if a.Status != http.StatusUnprocessableEntity {
					t.Errorf("%s as %s: %d %.500s", c.name, format, a.Status, a.Body)
				}
				if peak := peakMemory(t, d.PID()); peak > importMemory {
					t.Errorf("%s as %s: of %d bytes the daemon took %d MB", c.name, format, body.Len(), peak>>20)
				}
			}
		}
	}
}

// each gives so many names, the settings of a profile first.
func each(count int, format string) func(func(string) bool) {
	return func(yield func(string) bool) {
		if !yield("Default/Preferences") {
			return
		}
		for n := range count {
			if !yield(fmt.Sprintf(format, n)) {
				return
			}
		}
	}
}

func packZstd(t testing.TB, to io.Writer, files func(func(string) bool)) {
	z, err := zstd.NewWriter(to)
	if err != nil {
		t.Fatal(err)
	}
	packTar(t, z, files)
}

func packGzip(t testing.TB, to io.Writer, files func(func(string) bool)) {
	packTar(t, gzip.NewWriter(to), files)
}

func packTar(t testing.TB, to io.WriteCloser, files func(func(string) bool)) {
	w := tar.NewWriter(to)
	for name := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), to.Close()); err != nil {
		t.Fatal(err)
	}
}

func packZip(t testing.TB, to io.Writer, files func(func(string) bool)) {
	w := zip.NewWriter(to)
	for name := range files {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAttackStateFiles sends state files of other tools, whose many small objects would
// take many times their size. Each is refused.
func TestAttackStateFiles(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Unraced: true}))
	many := strings.Repeat("{},", 20<<20)
	names := `{` + manyNames(60<<20) + `"x":1}`
	var archive bytes.Buffer
	z, err := zstd.NewWriter(&archive)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	state := `{"schema_version":"1","tabs":[` + many + `{}]}`
	err = w.WriteHeader(&tar.Header{Name: "state.json", Mode: 0o600, Typeflag: tar.TypeReg, Size: int64(len(state))})
	if err == nil {
		_, err = io.WriteString(w, state)
	}
	if err := errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ format, body string }{
		{"playwright", `{"cookies":[` + many + `{}]}`}, {"playwright", names}, {"puppeteer", `[` + many + `{}]`}, {"stasis", archive.String()},
	} {
		forgetPeak(t, d)
		a := within(t, d, "POST", "/v1/snapshots?format="+test.format, "application/octet-stream", strings.NewReader(test.body))
		// Otherwise the process that reads them would die of them, which has the same status.
		if a.Status != http.StatusUnprocessableEntity || !strings.Contains(string(a.Body), "the file holds more than") {
			t.Errorf("%s: %d %.500s", test.format, a.Status, a.Body)
		}
		if peak := peakMemory(t, d.PID()); peak > importMemory {
			t.Errorf("%s: of %d bytes the daemon took %d MB", test.format, len(test.body), peak>>20)
		}
	}
}

// TestAttackAbandonedImports checks that a client that disconnects while its archive
// is unpacked or counted frees its slot at once.
func TestAttackAbandonedImports(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true}))
	var plain bytes.Buffer
	packZstd(t, &plain, each(20_000, "Default/Extension State/%d/f"))
	for left := 3; left > 0; { // one more than may run at once
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/v1/snapshots?format=datadir", bytes.NewReader(plain.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+daemon.Key)
		req.Header.Set("Content-Type", "application/octet-stream")
		status, done := 0, make(chan struct{})
		go func() {
			defer close(done)
			if res, err := http.DefaultClient.Do(req); err == nil {
				status = res.StatusCode
				_ = res.Body.Close()
			}
		}()
		seen := false
		daemon.Eventually(t, time.Minute, "an import unpacks its archive", func() bool {
			seen = unpacking(d.Dir)
			select {
			case <-done:
				return true
			default:
				return seen
			}
		})
		cancel()
		<-done
		if seen {
			left--
		} else if status != http.StatusCreated { // else it was complete before the test looked
			t.Fatalf("an import ended with %d", status)
		}
		daemon.Eventually(t, soon, "the run directory of the import is removed", func() bool { return !unpacking(d.Dir) })
	}
}

// unpacking reports whether a run directory has a profile.
func unpacking(dir string) bool {
	found, err := filepath.Glob(filepath.Join(dir, "run", "*", "*", "Default"))
	return err == nil && len(found) > 0
}
