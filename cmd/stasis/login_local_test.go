package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/stasisd/stasis/client"
)

// Only the profile and its version are packed, without caches, links and sockets.
func TestPackProfile(t *testing.T) {
	dir := t.TempDir()
	if err := writePreferences(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Last Version", "Local State", "chrome.log", "Crashpad/x", "DefaultOther/x", "Default/Cookies", "Default/Local Storage/leveldb/CURRENT", "Default/Cache/x", "Default/Code Cache/js/x"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "Default", "link")); err != nil {
		t.Fatal(err)
	}
	packed := packProfile(dir)
	defer packed.Close()
	z, err := zstd.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var got []string
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil || h.Name != "Default/Preferences" && string(body) != h.Name {
			t.Errorf("%s: %q %v", h.Name, body, err)
		}
		got = append(got, h.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"Default/Cookies", "Default/Local Storage/leveldb/CURRENT", "Default/Preferences", "Last Version"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := io.ReadAll(packProfile(filepath.Join(dir, "absent"))); err == nil {
		t.Error("a folder that is not there was packed")
	}
}

// A Chrome that fails is reported with its last words, one that the person closes is done, and
// one whose login is discarded is ended.
func TestOwnChrome(t *testing.T) {
	d := startLoginDaemon(t)
	run := func(script string, deeds ...deed) (string, error) {
		chrome := filepath.Join(t.TempDir(), "chrome")
		if err := os.WriteFile(chrome, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("DISPLAY", ":1")
		return d.login(t, true, loginCmd{Local: true, Chrome: chrome}, deeds...)
	}
	if _, err := run("echo no display >&2; exit 3"); report(err) != exitFailed || !strings.Contains(err.Error(), "exit status 3\nno display") {
		t.Error(err)
	}
	if out, err := run("exec sleep 600", ctrlC, yes); report(err) != exitInterrupted || !strings.Contains(out, "replaces all of it") {
		t.Error(out, err)
	}
	if d.did() != "" {
		t.Error(d.did())
	}
	// The daemon of this test has no import.
	var refused *client.Error
	if out, err := run(`for a; do echo "$a"; done >&2; case "$*" in *remote-debugging*|*automation*) exit 1;; *--password-store=basic*https://example.com/login) ;; *) exit 1;; esac`); !errors.As(err, &refused) || refused.Code != "not_found" || !strings.Contains(out, "Importing the profile.") {
		t.Error(out, err)
	}
	if report(func() error { _, err := findDesktopChrome("/absent/chrome"); return err }()) != exitChromeMissing {
		t.Error("a Chrome that is not there was found")
	}
}

// When the terminal is closed, a login is discarded as after SIGTERM: otherwise its profile,
// or the file with its link, would stay on the disk.
func TestClosedTerminal(t *testing.T) {
	p, stop := newPerson()
	defer stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for d := range p.did { // the input of the test may have ended
		if d.kind == termination {
			return
		}
	}
}
