package auditlog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// read returns the entries of files, in their order.
func read(t *testing.T, paths ...string) []profiles.AuditEntry {
	t.Helper()
	var all []profiles.AuditEntry
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var e profiles.AuditEntry
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			all = append(all, e)
		}
	}
	return all
}

func open(t *testing.T, path string) *File {
	t.Helper()
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A file gets every entry, although it is moved, truncated and torn, and although a daemon
// was killed before it wrote the file.
func TestFile(t *testing.T) {
	r, path := newRig(t), filepath.Join(t.TempDir(), "audit.jsonl")
	r.open(t, 0, open(t, path))
	r.Record(Act{Call: "a", UserID: "<Зоя>\n"})
	r.entries(t)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	r.Record(Act{Call: "b"})
	r.entries(t)
	verify(t, read(t, path+".1", path))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".2", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil { // as logrotate's copytruncate
		t.Fatal(err)
	}
	r.Record(Act{Call: "c"})
	r.close()
	all := read(t, path+".1", path+".2", path)
	verify(t, all)
	if got := shown(all); got != "ax1 bx1 cx1" {
		t.Errorf("the files have %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	// A daemon that was killed has written the catalogue only, and a part of a line.
	r.open(t, 0)
	r.Record(Act{Call: "d"})
	r.close()
	torn, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := torn.WriteString(`{"number":7,"at":"20`); err != nil {
		t.Fatal(err)
	}
	_ = torn.Close()
	r.open(t, 0, open(t, path))
	r.close()
	all = read(t, path+".1", path+".2", path)
	verify(t, all)
	if got := shown(all); got != "ax1 bx1 cx1 dx1" {
		t.Errorf("the files have %s", got)
	}
	head, err := r.AuditHead(t.Context())
	if err != nil || head.Hash != all[len(all)-1].Hash {
		t.Errorf("the file ends with %d, the catalogue with %d", all[len(all)-1].Number, head.Number)
	}
	if log := r.out.String(); strings.Contains(log, "WARN") || strings.Contains(log, "ERROR") {
		t.Errorf("the log:\n%s", log)
	}

	// A file of a log that is ahead of the catalogue, or another one, is not continued
	// silently.
	ahead := newRig(t)
	ahead.open(t, 0, open(t, path))
	ahead.close()
	if !strings.Contains(ahead.out.String(), "entries that the catalogue does not have") {
		t.Errorf("the log:\n%s", ahead.out.String())
	}
}

func TestFileRefused(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	for _, text := range []string{"hello\n", `{"number":1}` + "\n", strings.Repeat("x", 3*maxLine)} {
		if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFile(other); !fault.Is(err, fault.Config) {
			t.Errorf("%.20q: %v", text, err)
		}
		if now, err := os.ReadFile(other); err != nil || string(now) != text {
			t.Errorf("%.20q was changed", text)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "audit"), "/dev/full"} {
		if _, err := OpenFile(path); !fault.Is(err, fault.Config) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// failing is a file that can fail.
type failing struct {
	*File
	fails atomic.Bool
}

func (f *failing) Write(lines [][]byte) error {
	if f.fails.Load() {
		return errors.New("the disk is full")
	}
	return f.File.Write(lines)
}

// A file that cannot be written gets its entries later.
func TestFileFails(t *testing.T) {
	r, path := newRig(t), filepath.Join(t.TempDir(), "audit.jsonl")
	f := &failing{File: open(t, path)}
	r.open(t, 0, f)
	r.entries(t)
	f.fails.Store(true)
	for range 3 {
		r.Record(Act{Call: "a"})
		r.entries(t)
	}
	f.fails.Store(false)
	r.Record(Act{Call: "b"})
	r.close()
	all := read(t, path)
	verify(t, all)
	if got := shown(all); got != "ax1 ax1 ax1 bx1" {
		t.Errorf("the file has %s", got)
	}
	if log := r.out.String(); strings.Count(log, "second place; trying") != 1 {
		t.Errorf("the log:\n%s", log)
	}
}

func TestSyslog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if _, err := OpenSyslog("unixgram", path); !fault.Is(err, fault.Config) {
		t.Errorf("without a syslog: %v", err)
	}
	server, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	s, err := OpenSyslog("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.open(t, 0, s)
	r.Record(Act{Call: "a"})
	r.close()
	in := bufio.NewReaderSize(server, maxLine)
	var all []profiles.AuditEntry
	for range 3 {
		message, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := bytes.Cut(message, []byte("]: "))
		var e profiles.AuditEntry
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("%s: %v", message, err)
		}
		all = append(all, e)
	}
	verify(t, all)
	if got := shown(all); got != "ax1" {
		t.Errorf("syslog has %s", got)
	}
}
