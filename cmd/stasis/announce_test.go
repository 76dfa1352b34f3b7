//go:build linux

package main

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Output that is no terminal never has the key itself, only where it is. With JSON every line is
// a record of the log.
func TestAnnounce(t *testing.T) {
	key := firstKey{place: "/data/api-key", made: "the-secret"}
	for format, want := range map[string][2]string{
		"text": {"stasis devel listens on http://127.0.0.1:1\nAPI key: in /data/api-key\n", ""},
		"json": {"", `"url":"http://127.0.0.1:1"}` + "\n"},
	} {
		var log bytes.Buffer
		printed := printedBy(t, func() {
			(&serveCmd{LogFormat: format}).announce("http://127.0.0.1:1", key, slog.New(slog.NewJSONHandler(&log, nil)))
		})
		if printed != want[0] || !strings.Contains(log.String(), want[1]) || (log.Len() > 0) != (format == "json") {
			t.Errorf("%s: printed %q, logged %q", format, printed, log.String())
		}
		if all := printed + log.String(); strings.Contains(all, key.made) || !strings.Contains(all, key.place) {
			t.Errorf("%s: the key itself is shown, or not its place: %q", format, all)
		}
	}
}

// printedBy returns what f prints to standard output.
func printedBy(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = before
	_ = w.Close()
	printed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}

// A socket of systemd gets the state, and a wrong one only makes a warning.
func TestNotifySystemd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	t.Setenv("NOTIFY_SOCKET", path)
	notifySystemd(t.Context(), "READY=1", logger)
	if err := socket.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 64)
	n, err := socket.Read(got)
	if err != nil || string(got[:n]) != "READY=1" || log.Len() > 0 {
		t.Errorf("received %q, %v; logged %q", got[:n], err, log.String())
	}
	t.Setenv("NOTIFY_SOCKET", path+"-none")
	notifySystemd(t.Context(), "READY=1", logger)
	if !strings.Contains(log.String(), "systemd cannot be notified") {
		t.Errorf("logged %q", log.String())
	}
}
